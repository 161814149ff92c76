// The safetensors container: named tensors in one file, read in place and written without a copy.
//
//   8 bytes  u64 n                  little-endian, as everything here
//   n bytes  JSON object            {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//                                    "__metadata__": {"key": "text"}}     offsets count from the end of the
//                                    header
//   rest     the tensors' bytes     row-major, no overlap, no hole
//
// Format: huggingface/safetensors, README "Format"; n is limited to 100 MB there and here.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "depthbench/core/dtype.hpp"
#include "depthbench/core/error.hpp"
#include "depthbench/core/shape.hpp"
#include "depthbench/io/atomic_file.hpp"
#include "depthbench/io/bytes.hpp"
#include "depthbench/io/json.hpp"
#include "depthbench/io/mapped_file.hpp"

namespace depthbench {

struct TensorEntry {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;   // [] is a scalar; files may have more than 4 axes
  std::span<const std::byte> bytes;  // of any alignment: memcpy, do not cast

  std::int64_t numel() const { return std::int64_t(bytes.size() / size_of(dtype)); }
};

inline std::vector<std::int64_t> extents_of(const Shape& shape) {
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

inline std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DType t :
       {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u32, DType::u16, DType::u8})
    if (name == name_of(t)) return t;
  return std::nullopt;
}

// SafeTensors file(path);   if (const TensorEntry* w = file.find("w")) ...;   auto v =
// file.read_as<double>("w");
//   entries and their bytes are valid as long as `file` lives; moves keep them
//   throws file_error (cannot be read), format_error (not what it claims to be; the byte or tensor is named),
//   dtype_error (an element type this library does not have)
class SafeTensors {
 public:
  static constexpr std::uint64_t max_header = 100'000'000;

  explicit SafeTensors(const std::filesystem::path& path) : file_(path) {
    const auto all = file_.bytes();
    if (all.size() < 8)
      fail<format_error>("{}: has {} bytes, a safetensors file needs at least 8", name(), all.size());
    const auto length = load<std::uint64_t>(all, 0);
    if (length > max_header)
      fail<format_error>("{}: claims a header of {} bytes, at most {} are allowed", name(), length,
                         max_header);
    if (length > all.size() - 8)
      fail<format_error>("{}: claims a header of {} bytes, has {} after the length", name(), length,
                         all.size() - 8);
    data_ = all.subspan(8 + length);
    JsonReader json(as_text(all.subspan(8, length)), name(), 8);
    json.object(
        [&](const std::string& key) { key == "__metadata__" ? read_metadata(json) : read_entry(json, key); });
    json.finish();
    check_layout();
  }

  const std::vector<std::string>& names() const { return names_; }  // in the header's order
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& name() const { return file_.name(); }  // the file's

  // Null if there is no such tensor.
  const TensorEntry* find(std::string_view tensor) const {
    const auto it = entries_.find(tensor);
    return it == entries_.end() ? nullptr : &it->second;
  }
  const TensorEntry& at(std::string_view tensor) const {
    if (const TensorEntry* entry = find(tensor)) return *entry;
    fail<format_error>("{}: has no tensor '{}' among its {}", name(), tensor, names_.size());
  }

  // All elements, row-major.   float, double from F64, F32, BF16;   int64 from I64, I32
  //   throws dtype_error for any other pair
  template <class T>
  std::vector<T> read_as(std::string_view tensor) const {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, std::int64_t>,
                  "read_as<T>: T is float, double or std::int64_t");
    const TensorEntry& entry = at(tensor);
    if constexpr (std::is_floating_point_v<T>) {
      if (entry.dtype == DType::f64) return converted<T, double>(entry);
      if (entry.dtype == DType::f32) return converted<T, float>(entry);
      if (entry.dtype == DType::bf16) return converted<T, bfloat16>(entry);
    } else {
      if (entry.dtype == DType::i64) return converted<T, std::int64_t>(entry);
      if (entry.dtype == DType::i32) return converted<T, std::int32_t>(entry);
    }
    fail<dtype_error>("{}: tensor '{}' has dtype {}, needs {}", name(), tensor, name_of(entry.dtype),
                      std::is_floating_point_v<T> ? "F64, F32 or BF16" : "I64 or I32");
  }

 private:
  template <class To, class From>
  static std::vector<To> converted(const TensorEntry& entry) {
    std::vector<To> out(std::size_t(entry.numel()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      From value;
      std::memcpy(&value, entry.bytes.data() + i * sizeof(From), sizeof(From));
      out[i] = static_cast<To>(value);
    }
    return out;
  }

  void read_metadata(JsonReader& json) {
    if (std::exchange(has_metadata_, true))
      fail<format_error>("{}: __metadata__ stands twice in the header", name());
    json.object([&](const std::string& key) {
      if (!metadata_.emplace(key, json.string()).second)
        fail<format_error>("{}: __metadata__ has '{}' twice", name(), key);
    });
  }

  void read_entry(JsonReader& json, const std::string& tensor) {
    std::optional<std::string> dtype_name;
    std::optional<std::vector<std::int64_t>> shape, offsets;
    const auto integers = [&](auto& list, std::size_t at_most) {
      if (list) fail<format_error>("{}: tensor '{}' has a key twice", name(), tensor);
      list.emplace();
      json.array([&] {
        if (list->size() == at_most) json.wrong("only begin and end");
        list->push_back(json.integer());
      });
    };
    json.object([&](const std::string& key) {
      if (key == "shape") return integers(shape, SIZE_MAX);
      if (key == "data_offsets") return integers(offsets, 2);
      if (key != "dtype") return json.skip();  // a later version's
      if (dtype_name) fail<format_error>("{}: tensor '{}' has a key twice", name(), tensor);
      dtype_name = json.string();
    });
    if (!dtype_name || !shape || !offsets || offsets->size() != 2)
      fail<format_error>("{}: tensor '{}' needs dtype, shape and data_offsets [begin, end]", name(), tensor);
    const auto dtype = dtype_from_name(*dtype_name);
    if (!dtype)
      fail<dtype_error>("{}: tensor '{}' has dtype {}, needs one of F64 F32 BF16 I64 I32 U32 U16 U8", name(),
                        tensor, *dtype_name);
    const auto needs = tensor_bytes(*shape, size_of(*dtype));
    if (!needs)
      fail<format_error>("{}: tensor '{}' has extents that are negative or too large", name(), tensor);
    const std::int64_t begin = (*offsets)[0], end = (*offsets)[1];
    if (begin < 0 || end < begin || std::uint64_t(end) > data_.size())
      fail<format_error>("{}: tensor '{}' lies at bytes [{}, {}) of the data, has {}", name(), tensor, begin,
                         end, data_.size());
    if (std::uint64_t(end - begin) != *needs)
      fail<format_error>("{}: tensor '{}' has {} bytes, its shape and dtype {} need {}", name(), tensor,
                         end - begin, *dtype_name, *needs);
    TensorEntry entry{*dtype, std::move(*shape), data_.subspan(std::size_t(begin), std::size_t(end - begin))};
    if (!entries_.emplace(tensor, std::move(entry)).second)
      fail<format_error>("{}: tensor '{}' stands twice in the header", name(), tensor);
    names_.push_back(tensor);
  }

  void check_layout() const {  // every byte of the data belongs to exactly one tensor
    std::vector<std::pair<std::span<const std::byte>, const std::string*>> parts;
    for (const auto& [tensor, entry] : entries_) parts.emplace_back(entry.bytes, &tensor);
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
      return a.first.data() != b.first.data() ? std::less<>{}(a.first.data(), b.first.data())
                                              : a.first.size() < b.first.size();
    });
    std::size_t covered = 0;
    for (const auto& [bytes, tensor] : parts) {
      const std::size_t begin = std::size_t(bytes.data() - data_.data());
      if (begin != covered)
        fail<format_error>("{}: tensor '{}' begins at byte {} of the data, needs {}: {}", name(), *tensor,
                           begin, covered,
                           begin < covered ? "it overlaps the one before" : "there is a hole before it");
      covered += bytes.size();
    }
    if (covered != data_.size())
      fail<format_error>("{}: the tensors take {} bytes of data, the file has {}", name(), covered,
                         data_.size());
  }

  MappedFile file_;
  std::span<const std::byte> data_;
  std::vector<std::string> names_;
  std::map<std::string, TensorEntry, std::less<>> entries_;
  std::map<std::string, std::string> metadata_;
  bool has_metadata_ = false;
};

// SafeTensorsWriter out;   out.add("w", {2, 3}, std::span<const float>(w));   out.save(path);
//   keeps views: the values must live, and are read, until save() has returned
//   wide elements are written first, so that every tensor is aligned to its own element
class SafeTensorsWriter {
 public:
  // throws format_error for a name used before, shape_error if the bytes do not fill the shape
  void add(std::string name, DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes) {
    if (name == "__metadata__") fail<format_error>("SafeTensorsWriter: '__metadata__' cannot name a tensor");
    if (tensors_.contains(name)) fail<format_error>("SafeTensorsWriter: tensor '{}' is added twice", name);
    const auto needs = tensor_bytes(shape, size_of(dtype));
    if (needs != bytes.size())
      fail<shape_error>("SafeTensorsWriter: tensor '{}' has {} bytes, its shape and dtype {} need {}", name,
                        bytes.size(), name_of(dtype),
                        needs ? fmt::format("{}", *needs) : "more than memory holds");
    order_.push_back(name);
    tensors_.emplace(std::move(name), TensorEntry{dtype, std::move(shape), bytes});
  }
  template <class T>
  void add(std::string name, std::vector<std::int64_t> shape, std::span<const T> values) {
    add(std::move(name), dtype_of<T>, std::move(shape), std::as_bytes(values));
  }
  void add_metadata(std::string key, std::string value) { metadata_[std::move(key)] = std::move(value); }

  // Through AtomicFile: the file is the old one or the whole new one, whatever happens.
  void save(const std::filesystem::path& path) const {
    std::vector<const std::pair<const std::string, TensorEntry>*> parts;
    for (const std::string& name : order_) parts.push_back(&*tensors_.find(name));
    std::stable_sort(parts.begin(), parts.end(),
                     [](auto* a, auto* b) { return size_of(a->second.dtype) > size_of(b->second.dtype); });
    const std::string header = header_of(parts);
    const std::uint64_t length = header.size();
    write_file_atomically(path, [&](AtomicFile& file) {
      file.write(std::as_bytes(std::span(&length, 1)));
      file.write(header);
      for (const auto* part : parts) file.write(part->second.bytes);
    });
  }

 private:
  template <class Parts>
  std::string header_of(const Parts& parts) const {
    std::string header = "{";
    const auto comma = [&] { return header.size() > 1 ? "," : ""; };
    if (!metadata_.empty()) {
      std::string pairs;
      for (const auto& [key, value] : metadata_)
        pairs += fmt::format("{}{}:{}", pairs.empty() ? "" : ",", json_quote(key), json_quote(value));
      header += fmt::format("\"__metadata__\":{{{}}}", pairs);
    }
    std::size_t begin = 0;
    for (const auto* part : parts) {
      const auto& [name, entry] = *part;
      std::string shape;
      for (const std::int64_t e : entry.shape) shape += fmt::format("{}{}", shape.empty() ? "" : ",", e);
      header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", comma(),
                            json_quote(name), name_of(entry.dtype), shape, begin, begin + entry.bytes.size());
      begin += entry.bytes.size();
    }
    header += '}';
    header.append((8 - header.size() % 8) % 8, ' ');  // the data starts aligned
    if (header.size() > SafeTensors::max_header)
      fail<format_error>("SafeTensorsWriter: the header takes {} bytes, at most {} are allowed",
                         header.size(), SafeTensors::max_header);
    return header;
  }

  std::vector<std::string> order_;
  std::map<std::string, TensorEntry, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace depthbench
