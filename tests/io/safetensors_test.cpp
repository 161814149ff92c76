#include "depthbench/io/safetensors.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/io/fuzz.hpp"
#include "tests/io/temp_folder.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Catch::Contains;

namespace {

std::string container(const std::string& header, const std::string& data, std::uint64_t claimed) {
  std::string file(reinterpret_cast<const char*>(&claimed), 8);
  return file + header + data;
}
std::string container(const std::string& header, const std::string& data = "") {
  return container(header, data, header.size());
}
std::string entry(const std::string& name, const char* dtype, const char* shape, std::int64_t begin,
                  std::int64_t end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, dtype, shape, begin,
                     end);
}

// Opens and touches everything, as a user would.
void open_and_read(const std::filesystem::path& path) {
  const SafeTensors file(path);
  std::size_t bytes = 0;
  double sum = 0;
  for (const std::string& name : file.names()) {
    const TensorEntry& e = file.at(name);
    bytes += e.bytes.size();
    for (const std::byte b : e.bytes) sum += double(b);
    if (e.dtype == DType::f32 || e.dtype == DType::bf16 || e.dtype == DType::f64)
      for (const double x : file.read_as<double>(name)) sum += std::isfinite(x) ? x : 0;
  }
  volatile double used = sum;
  (void)used;
  if (bytes > std::filesystem::file_size(path)) FAIL("more bytes of tensors than the file has");
}
void open_bytes(const std::string& content) {
  static const TempFolder folder;
  open_and_read(folder.write("damaged.safetensors", content));
}
std::string message_of(const std::string& content) {
  try {
    open_bytes(content);
  } catch (const error& e) {
    return e.what();
  }
  return "accepted";
}

std::string small_valid_file() {
  const TempFolder folder;
  const std::vector<float> w{1, 2, 3, 4, 5, 6};
  const std::vector<bfloat16> g{bfloat16(0.5f), bfloat16(-2.f), bfloat16(3.f)};
  const std::vector<std::int64_t> ids{7, -8};
  SafeTensorsWriter out;
  out.add_metadata("step", "12");
  out.add("w", {2, 3}, std::span<const float>(w));
  out.add("g", {3}, std::span<const bfloat16>(g));
  out.add("ids", {2}, std::span<const std::int64_t>(ids));
  out.save(folder / "x");
  return read_whole(folder / "x");
}

}  // namespace

TEST_CASE("safetensors: what is written reads back", "[io]") {
  const TempFolder folder;
  const std::vector<double> a{1.5, -2.25, std::numeric_limits<double>::quiet_NaN(), 1e300};
  const std::vector<float> b{0.1f, std::numeric_limits<float>::infinity()};
  const std::vector<bfloat16> c{bfloat16(1.f), bfloat16(-0.5f), bfloat16(3.f)};
  const std::vector<std::int64_t> d{INT64_MIN, INT64_MAX};
  const std::vector<std::int32_t> e{-1};
  const double scalar = 42;
  SafeTensorsWriter out;
  out.add_metadata("format", "depthbench");
  out.add_metadata("quote \" and \n", "\xC3\xA9");
  out.add("c", {3}, std::span<const bfloat16>(c));
  out.add("a.weight", {2, 2}, std::span<const double>(a));
  out.add("b", {1, 2, 1}, std::span<const float>(b));
  out.add("d", {2}, std::span<const std::int64_t>(d));
  out.add("e", {1}, std::span<const std::int32_t>(e));
  out.add("none", {0, 5}, std::span<const float>());
  out.add("scalar", {}, std::span<const double>(&scalar, 1));
  out.save(folder / "x.safetensors");

  SafeTensors opened(folder / "x.safetensors");
  const SafeTensors file = std::move(opened);
  CHECK(file.names().size() == 7);
  CHECK(file.metadata().at("format") == "depthbench");
  CHECK(file.metadata().at("quote \" and \n") == "\xC3\xA9");
  REQUIRE(file.find("a.weight"));
  CHECK(file.find("a.weight")->shape == std::vector<std::int64_t>{2, 2});
  CHECK(file.find("a.weight")->dtype == DType::f64);
  CHECK(file.find("a.weight")->numel() == 4);
  CHECK(file.find("absent") == nullptr);
  CHECK(file.find("none")->shape == std::vector<std::int64_t>{0, 5});
  CHECK(file.find("none")->numel() == 0);
  CHECK(file.find("scalar")->shape.empty());
  const auto a_again = file.read_as<double>("a.weight");
  CHECK(a_again[1] == -2.25);
  CHECK(std::bit_cast<std::uint64_t>(a_again[2]) == std::bit_cast<std::uint64_t>(a[2]));
  CHECK(file.read_as<float>("a.weight")[0] == 1.5f);
  CHECK(file.read_as<double>("b")[0] == double(0.1f));
  CHECK(std::isinf(file.read_as<float>("b")[1]));
  CHECK(file.read_as<float>("c") == std::vector<float>{1, -0.5f, 3});
  CHECK(file.read_as<double>("c")[2] == 3.0);
  CHECK(file.read_as<std::int64_t>("d") == d);
  CHECK(file.read_as<std::int64_t>("e") == std::vector<std::int64_t>{-1});
  CHECK(file.read_as<double>("scalar") == std::vector<double>{42});
  CHECK(file.read_as<float>("none").empty());
  CHECK_THROWS_WITH(file.at("absent"), Contains("has no tensor 'absent' among its 7"));
  CHECK_THROWS_WITH(file.read_as<double>("d"), Contains("tensor 'd' has dtype I64, needs F64, F32 or BF16"));
  CHECK_THROWS_WITH(file.read_as<std::int64_t>("b"), Contains("tensor 'b' has dtype F32, needs I64 or I32"));
}

TEST_CASE("safetensors: another JSON library reads our header, and every tensor is aligned", "[io]") {
  const std::string content = small_valid_file();
  const std::uint64_t n = load<std::uint64_t>(as_byte_span(content), 0);
  CHECK(n % 8 == 0);
  const auto header = nlohmann::json::parse(content.substr(8, n));
  CHECK(header["__metadata__"]["step"] == "12");
  CHECK(header["ids"]["data_offsets"] == nlohmann::json{0, 16});  // the widest elements first
  CHECK(header["w"]["data_offsets"] == nlohmann::json{16, 40});
  CHECK(header["w"]["shape"] == nlohmann::json{2, 3});
  CHECK(header["g"]["data_offsets"] == nlohmann::json{40, 46});
  CHECK(content.size() == 8 + n + 46);
}

TEST_CASE("safetensors: the writer rejects what no reader would take", "[io]") {
  const TempFolder folder;
  const std::vector<float> w(6);
  SafeTensorsWriter out;
  out.add("w", {2, 3}, std::span<const float>(w));
  CHECK_THROWS_WITH(out.add("w", {6}, std::span<const float>(w)), Contains("tensor 'w' is added twice"));
  CHECK_THROWS_WITH(out.add("v", {2, 2}, std::span<const float>(w)),
                    Contains("tensor 'v' has 24 bytes, its shape and dtype F32 need 16"));
  CHECK_THROWS_AS(out.add("v", {-2, -3}, std::span<const float>(w)), shape_error);
  CHECK_THROWS_WITH(out.add("__metadata__", {6}, std::span<const float>(w)),
                    Contains("cannot name a tensor"));
  out.add("bad \xff name", {6}, std::span<const float>(w));
  CHECK_THROWS_WITH(out.save(folder / "x"), Contains("needs UTF-8"));
  CHECK_FALSE(std::filesystem::exists(folder / "x"));
}

TEST_CASE("safetensors: an empty container is valid", "[io]") {
  const TempFolder folder;
  SafeTensorsWriter().save(folder / "x");
  CHECK(SafeTensors(folder / "x").names().empty());
  CHECK(message_of(container("{}   ")) == "accepted");
}

TEST_CASE("safetensors: reads the golden cases", "[io]") {
  const std::filesystem::path golden = std::filesystem::path(DEPTHBENCH_SOURCE_DIR) / "tests/golden";
  int files = 0;
  for (const auto& folder : std::filesystem::directory_iterator(golden)) {
    if (!folder.is_directory()) continue;
    const SafeTensors file(folder.path() / "tensors.safetensors");
    const auto tokens = file.read_as<std::int64_t>("tokens");
    CHECK(std::int64_t(tokens.size()) == file.at("tokens").numel());
    CHECK(file.at("loss").shape.empty());
    CHECK(file.read_as<double>("loss")[0] == file.read_as<double>("losses")[0]);
    CHECK(file.read_as<float>("param.embeddings.weight").size() > 0);  // F64 in some, BF16 in others
    ++files;
  }
  CHECK(files >= 40);
}

TEST_CASE("safetensors: each lie in a header has its sentence", "[io]") {
  const std::string four(4, 'x'), eight(8, 'x');
  CHECK_THAT(message_of(""), Contains("has 0 bytes, a safetensors file needs at least 8"));
  CHECK_THAT(message_of("1234567"), Contains("has 7 bytes"));
  CHECK_THAT(message_of(container("{}", "", 3)),
             Contains("claims a header of 3 bytes, has 2 after the length"));
  CHECK_THAT(message_of(container("{}", "", 100'000'001)), Contains("at most 100000000 are allowed"));
  CHECK_THAT(message_of(container("{}", "", UINT64_MAX)), Contains("at most 100000000 are allowed"));
  CHECK_THAT(message_of(container("")), Contains("the JSON text ends, needs an object"));
  CHECK_THAT(message_of(container("[]")), Contains("byte 8: has '[', needs an object"));
  CHECK_THAT(message_of(container("{}x")), Contains("byte 10: has 'x', needs the end of the text"));
  CHECK_THAT(message_of(container("{\"\xff\":1}")), Contains("needs UTF-8"));
  CHECK_THAT(message_of(container("{\"a\":" + std::string(100000, '['))), Contains("needs an object"));
  CHECK_THAT(message_of(container("{\"a\":{\"extra\":" + std::string(100000, '['))),
             Contains("at most 64 levels"));
  const auto one = [&](const std::string& e, const std::string& data) {
    return message_of(container("{" + e + "}", data));
  };
  CHECK(one(entry("a", "F32", "[1]", 0, 4), four) == "accepted");
  CHECK_THAT(one(R"("a":{"dtype":"F32","shape":[1]})", four),
             Contains("needs dtype, shape and data_offsets"));
  CHECK_THAT(one(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0]})", four),
             Contains("data_offsets [begin, end]"));
  CHECK_THAT(one(R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})", four),
             Contains("only begin and end"));
  CHECK_THAT(one(R"("a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})", four),
             Contains("a key twice"));
  CHECK_THAT(one(R"("a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]})", four),
             Contains("a key twice"));
  CHECK_THAT(one(entry("a", "F16", "[2]", 0, 4), four),
             Contains("tensor 'a' has dtype F16, needs one of F64"));
  CHECK_THAT(one(entry("a", "F32", "[1.0]", 0, 4), four), Contains("needs a whole number of 64 bits"));
  CHECK_THAT(one(entry("a", "F32", "[-1]", 0, 4), four), Contains("negative or too large"));
  CHECK_THAT(one(entry("a", "U8", "[4611686018427387904,4]", 0, 0), ""), Contains("negative or too large"));
  CHECK_THAT(one(entry("a", "U8", "[4294967296,4294967296]", 0, 0), ""), Contains("negative or too large"));
  CHECK_THAT(one(entry("a", "F32", "[4611686018427387904]", 0, 4), four), Contains("negative or too large"));
  CHECK_THAT(one(entry("a", "U8", "[4611686018427387904]", 0, 4), four),
             Contains("has 4 bytes, its shape and dtype U8 need"));
  CHECK_THAT(one(entry("a", "F32", "[99999999999999999999]", 0, 4), four),
             Contains("a whole number of 64 bits"));
  CHECK_THAT(one(entry("a", "F32", "[2]", 0, 8), four), Contains("lies at bytes [0, 8) of the data, has 4"));
  CHECK_THAT(one(entry("a", "F32", "[1]", 4, 0), four), Contains("lies at bytes [4, 0)"));
  CHECK_THAT(one(entry("a", "F32", "[1]", -4, 0), four), Contains("lies at bytes [-4, 0)"));
  CHECK_THAT(one(entry("a", "F32", "[2]", 0, 4), four),
             Contains("has 4 bytes, its shape and dtype F32 need 8"));
  CHECK_THAT(one(entry("a", "F32", "[1]", 0, 4) + "," + entry("a", "F32", "[1]", 4, 8), eight),
             Contains("tensor 'a' stands twice"));
  CHECK_THAT(one(entry("a", "F32", "[1]", 0, 4) + "," + entry("b", "F32", "[1]", 0, 4), four),
             Contains("begins at byte 0 of the data, needs 4: it overlaps"));
  CHECK_THAT(one(entry("a", "F32", "[1]", 0, 4) + "," + entry("b", "F32", "[1]", 2, 6), std::string(6, 'x')),
             Contains("tensor 'b' begins at byte 2 of the data, needs 4: it overlaps"));
  CHECK_THAT(one(entry("a", "F32", "[1]", 4, 8), eight), Contains("there is a hole before it"));
  CHECK_THAT(one(entry("a", "F32", "[1]", 0, 4), eight),
             Contains("the tensors take 4 bytes of data, the file has 8"));
  CHECK(one(entry("z", "F32", "[0]", 4, 4) + "," + entry("a", "F32", "[1]", 0, 4), four) == "accepted");
  CHECK_THAT(one(R"("__metadata__":{"a":1})", ""), Contains("needs a string"));
  CHECK_THAT(one(R"("__metadata__":{"a":"1","a":"2"})", ""), Contains("__metadata__ has 'a' twice"));
  CHECK_THAT(one(R"("__metadata__":{},"__metadata__":{})", ""), Contains("__metadata__ stands twice"));
}

TEST_CASE("safetensors: paths that are no file", "[io]") {
  const TempFolder folder;
  CHECK_THROWS_AS(SafeTensors(folder / "missing"), file_error);
  CHECK_THROWS_AS(SafeTensors(folder.path()), file_error);
}

TEST_CASE("safetensors: survives damage", "[io][fuzz]") {
  const std::string valid = small_valid_file();
  const std::size_t header = 8 + load<std::uint64_t>(as_byte_span(valid), 0);
  CHECK(message_of(valid) == "accepted");
  CHECK(every_prefix(valid, open_bytes) == valid.size());
  CHECK(every_prefix(valid + "x", open_bytes) == valid.size());  // only the whole file is valid
  CHECK(random_damage(valid, 8, 1000, 1, open_bytes) > 900);
  CHECK(random_damage(valid, header, 6000, 2, open_bytes) > 3000);
  CHECK(random_damage(valid, valid.size(), 3000, 3, open_bytes) > 1000);
}
