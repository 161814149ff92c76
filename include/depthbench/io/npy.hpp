// NumPy's .npy: one array in a file, versions 1.0, 2.0 and 3.0, little-endian, C order.
//
//   6 bytes  "\x93NUMPY"      2 bytes  major, minor      u16 (version 1) or u32 (2, 3)  n
//   n bytes  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  padded with spaces, ends with '\n'
//   rest     the elements
//
// Format: numpy.lib.format (NEP 1).
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "depthbench/core/dtype.hpp"
#include "depthbench/core/error.hpp"
#include "depthbench/io/atomic_file.hpp"
#include "depthbench/io/bytes.hpp"
#include "depthbench/io/mapped_file.hpp"

namespace depthbench {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

// NumPy's spelling of our types; it has no bfloat16.
struct NpyType {
  DType dtype;
  std::string_view descr;
};
inline constexpr NpyType npy_types[] = {{DType::f64, "<f8"}, {DType::f32, "<f4"}, {DType::i64, "<i8"},
                                        {DType::i32, "<i4"}, {DType::u32, "<u4"}, {DType::u16, "<u2"},
                                        {DType::u8, "|u1"}};

// NpyFile file(path);   file.dtype(), file.shape(), file.bytes()   valid as long as `file` lives
//   throws file_error, format_error (with the byte), dtype_error (big-endian, complex, objects, ...)
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path) : file_(path) {
    const auto all = file_.bytes();
    if (!as_text(all).starts_with(npy_magic) || all.size() < 10)
      fail<format_error>("{}: does not begin as a .npy file does ({} bytes)", name(), all.size());
    const int major = int(all[6]), minor = int(all[7]);
    if (major < 1 || major > 3 || minor != 0)
      fail<format_error>("{}: is .npy version {}.{}, needs 1.0, 2.0 or 3.0", name(), major, minor);
    const std::size_t start = major == 1 ? 10 : 12;
    if (all.size() < start) fail<format_error>("{}: ends inside the header's length", name());
    const std::size_t length = major == 1 ? load<std::uint16_t>(all, 8) : load<std::uint32_t>(all, 8);
    if (length > all.size() - start)
      fail<format_error>("{}: claims a header of {} bytes, has {}", name(), length, all.size() - start);
    text_ = as_text(all.subspan(0, start + length));
    pos_ = start;
    read_header();
    bytes_ = all.subspan(start + length);
    const auto needs = tensor_bytes(shape_, size_of(dtype_));
    if (needs != bytes_.size())
      fail<format_error>("{}: has {} bytes of data, its shape and type need {}", name(), bytes_.size(),
                         needs ? fmt::format("{}", *needs) : "more than memory holds");
  }

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::span<const std::byte> bytes() const { return bytes_; }  // of any alignment
  const std::string& name() const { return file_.name(); }

 private:
  [[noreturn]] void wrong(std::string_view needed) const {
    fail<format_error>("{}: byte {} of the .npy header: needs {}", name(), pos_, needed);
  }
  void spaces() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n')) ++pos_;
  }
  bool take(std::string_view token) {
    spaces();
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) wrong(token);
  }
  std::string_view quoted() {
    const char quote = take("'") ? '\'' : take("\"") ? '"' : '\0';
    const std::size_t end = quote ? text_.find(quote, pos_) : std::string_view::npos;
    if (end == std::string_view::npos) wrong("a quoted word");
    const std::string_view word = text_.substr(pos_, end - pos_);
    pos_ = end + 1;
    return word;
  }

  void read_header() {  // a Python dict: its three keys in any order, each once
    bool descr = false, order = false, shape = false;
    need("{");
    while (!take("}")) {
      const std::string_view key = quoted();
      bool& seen = key == "descr" ? descr : key == "fortran_order" ? order : shape;
      if ((key != "descr" && key != "fortran_order" && key != "shape") || seen)
        wrong("descr, fortran_order, shape, once");
      seen = true;
      need(":");
      if (&seen == &descr)
        read_descr();
      else if (&seen == &order)
        read_order();
      else
        read_shape();
      if (!take(",")) {
        need("}");
        break;
      }
    }
    spaces();
    if (pos_ != text_.size()) wrong("nothing after the '}'");
    if (!descr || !order || !shape) wrong("all of descr, fortran_order, shape");
  }
  void read_descr() {
    if (take("[")) fail<dtype_error>("{}: is a structured array, needs one number type", name());
    const std::string_view has = quoted();
    for (const NpyType& type : npy_types)
      if (has == type.descr) {
        dtype_ = type.dtype;
        return;
      }
    fail<dtype_error>("{}: has elements of type '{}', needs one of <f8 <f4 <i8 <i4 <u4 <u2 |u1", name(),
                      has.substr(0, 40));
  }
  void read_order() {
    if (take("True"))
      fail<format_error>("{}: is in Fortran order, needs C order (np.ascontiguousarray)", name());
    need("False");
  }
  void read_shape() {
    need("(");
    while (!take(")")) {
      spaces();
      std::int64_t extent = -1;
      const char* first = text_.data() + pos_;
      const auto [end, code] = std::from_chars(first, text_.data() + text_.size(), extent);
      if (code != std::errc{} || extent < 0) wrong("an extent, a whole number of 63 bits");
      pos_ += std::size_t(end - first);
      shape_.push_back(extent);
      if (!take(",")) {
        need(")");
        break;
      }
    }
  }

  MappedFile file_;
  std::string_view text_;
  std::size_t pos_ = 0;
  DType dtype_ = DType::f32;
  std::vector<std::int64_t> shape_;
  std::span<const std::byte> bytes_;
};

// write_npy<float>(path, {rows, cols}, values): version 1.0, data aligned to 64 bytes, through AtomicFile
//   throws shape_error if the values do not fill the shape, file_error
template <class T>
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const T> values) {
  const auto needs = tensor_bytes(shape, sizeof(T));
  if (needs != values.size_bytes())
    fail<shape_error>("write_npy: {}: has {} elements, its shape needs {}", path.string(), values.size(),
                      needs ? fmt::format("{}", *needs / sizeof(T)) : "more than memory holds");
  std::string_view descr;
  for (const NpyType& type : npy_types)
    if (type.dtype == dtype_of<T>) descr = type.descr;
  if (descr.empty()) fail<dtype_error>("write_npy: {}: NumPy has no {}", path.string(), name_of(dtype_of<T>));
  std::string extents;  // a Python tuple: (), (3,), (2, 3)
  for (const std::int64_t e : shape) extents += fmt::format("{}{}", extents.empty() ? "" : ", ", e);
  if (shape.size() == 1) extents += ',';
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, extents);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  if (header.size() > 0xffff)
    fail<shape_error>("write_npy: {}: has {} axes, too many", path.string(), shape.size());
  const std::uint16_t length = std::uint16_t(header.size());
  write_file_atomically(path, [&](AtomicFile& file) {
    file.write(npy_magic);
    file.write(std::string_view("\x01\x00", 2));
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    file.write(std::as_bytes(values));
  });
}

}  // namespace depthbench
