#include "depthbench/io/npy.hpp"

#include <cstdint>
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

std::string npy(const std::string& header, const std::string& data, int major = 1) {
  std::string file(npy_magic);
  file += char(major);
  file += '\0';
  const std::uint32_t n = std::uint32_t(header.size());
  file.append(reinterpret_cast<const char*>(&n), major == 1 ? 2 : 4);
  return file + header + data;
}
std::string dict(const std::string& descr, const std::string& shape, const char* order = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape);
}

void open_bytes(const std::string& content) {
  static const TempFolder folder;
  const NpyFile file(folder.write("damaged.npy", content));
  unsigned sum = 0;
  for (const std::byte b : file.bytes()) sum += unsigned(b);
  volatile unsigned used = sum;
  (void)used;
  if (file.bytes().size() > content.size()) FAIL("more data than the file has");
}
std::string message_of(const std::string& content) {
  try {
    open_bytes(content);
  } catch (const error& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("npy: reads every type, version and spelling it claims to", "[io]") {
  const TempFolder folder;
  const auto open = [&](const std::string& content) { return NpyFile(folder.write("x.npy", content)); };
  for (const auto& [dtype, descr] : npy_types) {
    const NpyFile file = open(npy(dict(std::string(descr), "(3,)"), std::string(3 * size_of(dtype), 'a')));
    CHECK(file.dtype() == dtype);
    CHECK(file.shape() == std::vector<std::int64_t>{3});
    CHECK(file.bytes().size() == 3 * size_of(dtype));
  }
  for (const int version : {1, 2, 3})
    CHECK(open(npy(dict("<u2", "(2, 3)"), std::string(12, 'a'), version)).shape()[1] == 3);
  CHECK(open(npy(dict("<f4", "()"), "abcd")).shape().empty());
  CHECK(open(npy(dict("<f4", "(0, 7)"), "")).bytes().empty());
  CHECK(open(npy("{\"shape\":(1,2),\"fortran_order\":False,\"descr\":\"<u2\"}", "abcd")).shape().size() == 2);
  NpyFile first = open(npy(dict("<u2", "(2,)"), "abcd"));
  const NpyFile second = std::move(first);
  CHECK(as_text(second.bytes()) == "abcd");
}

TEST_CASE("npy: what is written reads back, aligned to 64 bytes", "[io]") {
  const TempFolder folder;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{2, 3}, {6}, {1, 2, 3, 1}}) {
    write_npy<float>(folder / "x.npy", shape, values);
    const NpyFile file(folder / "x.npy");
    CHECK(file.dtype() == DType::f32);
    CHECK(file.shape() == shape);
    CHECK(load<float>(file.bytes(), 8) == 3.f);
    CHECK((std::filesystem::file_size(folder / "x.npy") - 24) % 64 == 0);
  }
  const std::vector<double> scalar{7};
  write_npy<double>(folder / "s.npy", {}, scalar);
  CHECK(NpyFile(folder / "s.npy").shape().empty());
  // the bytes as numpy.save writes them
  write_npy<float>(folder / "x.npy", {2, 3}, values);
  CHECK(read_whole(folder / "x.npy") == std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                                            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
                                            std::string(58, ' ') + "\n" +
                                            std::string(as_text(std::as_bytes(std::span(values)))));
  write_npy<float>(folder / "x.npy", {6}, values);
  CHECK_THAT(read_whole(folder / "x.npy"), Contains("'shape': (6,), }"));
  CHECK_THROWS_WITH(write_npy<float>(folder / "x.npy", {7}, values),
                    Contains("has 6 elements, its shape needs 7"));
  const std::vector<bfloat16> b(1);
  CHECK_THROWS_WITH(write_npy<bfloat16>(folder / "x.npy", {1}, b), Contains("NumPy has no BF16"));
}

TEST_CASE("npy: each lie in a header has its sentence", "[io]") {
  const std::string eight(8, 'x');
  CHECK(message_of(npy(dict("<f4", "(2,)"), eight)) == "accepted");
  CHECK_THAT(message_of(""), Contains("does not begin as a .npy file does (0 bytes)"));
  CHECK_THAT(message_of("\x93NUMPZ\x01\x00\x00\x00"), Contains("does not begin"));
  CHECK_THAT(message_of(npy("", "", 4)), Contains("is .npy version 4.0, needs 1.0, 2.0 or 3.0"));
  CHECK_THAT(message_of(npy(dict("<f4", "(2,)"), eight).substr(0, 20)), Contains("claims a header of"));
  CHECK_THAT(message_of(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
             Contains("claims a header of 4294967295 bytes, has 0"));
  CHECK_THAT(message_of(std::string("\x93NUMPY\x01\x00\x03\x00{}", 12)),
             Contains("claims a header of 3 bytes, has 2"));
  CHECK_THAT(message_of(npy(dict("<f4", "(2,)", "True"), eight)), Contains("needs C order"));
  CHECK_THAT(message_of(npy(dict(">f4", "(2,)"), eight)),
             Contains("has elements of type '>f4', needs one of <f8"));
  CHECK_THAT(message_of(npy(dict("|O", "(2,)"), eight)), Contains("'|O'"));
  CHECK_THAT(message_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", eight)),
             Contains("structured array"));
  CHECK_THAT(message_of(npy(dict("<f4", "(3,)"), eight)),
             Contains("has 8 bytes of data, its shape and type need 12"));
  CHECK_THAT(message_of(npy(dict("<f4", "(1,)"), eight)),
             Contains("has 8 bytes of data, its shape and type need 4"));
  CHECK_THAT(message_of(npy(dict("<f4", "(-2,)"), eight)), Contains("needs an extent"));
  CHECK_THAT(message_of(npy(dict("<f4", "(4611686018427387904, 4)"), eight)),
             Contains("need more than memory holds"));
  CHECK_THAT(message_of(npy(dict("<f4", "(99999999999999999999,)"), eight)), Contains("needs an extent"));
  CHECK_THAT(message_of(npy(dict("<f4", "(4294967296, 1073741824)"), "")),
             Contains("need more than memory holds"));
  CHECK_THAT(message_of(npy("{'descr': '<f4', 'shape': (2,)}", eight)),
             Contains("needs all of descr, fortran_order, shape"));
  CHECK_THAT(message_of(npy("{'descr': '<f4', 'descr': '<f4'}", eight)),
             Contains("descr, fortran_order, shape, once"));
  CHECK_THAT(message_of(npy("{'other': 1}", eight)), Contains("descr, fortran_order, shape, once"));
  CHECK_THAT(message_of(npy(dict("<f4", "(2,)") + "x", eight)), Contains("nothing after the '}'"));
  CHECK_THAT(message_of(npy("{'descr", eight)), Contains("needs a quoted word"));
  CHECK_THAT(message_of(npy("", eight)), Contains("needs {"));
}

TEST_CASE("npy: paths that are no file", "[io]") {
  const TempFolder folder;
  CHECK_THROWS_AS(NpyFile(folder / "missing"), file_error);
  CHECK_THROWS_AS(NpyFile(folder.path()), file_error);
}

TEST_CASE("npy: survives damage", "[io][fuzz]") {
  for (const int version : {1, 2}) {
    const std::string valid = npy(dict("<u4", "(2, 3)"), std::string(24, 'x'), version);
    CHECK(message_of(valid) == "accepted");
    CHECK(every_prefix(valid, open_bytes) == valid.size());
    CHECK(random_damage(valid, valid.size() - 24, 5000, std::uint64_t(version), open_bytes) > 3000);
  }
}
