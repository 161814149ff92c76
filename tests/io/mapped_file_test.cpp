#include "depthbench/io/mapped_file.hpp"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "depthbench/io/bytes.hpp"
#include "tests/catch.hpp"
#include "tests/io/temp_folder.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Catch::Contains;

TEST_CASE("mapped_file: gives the file's bytes", "[io]") {
  const TempFolder folder;
  const std::string content("a\0b\xff", 4);
  const MappedFile file(folder.write("x.bin", content));
  CHECK(file.size() == 4);
  CHECK(as_text(file.bytes()) == content);
  CHECK_THAT(file.name(), Contains("x.bin"));
}

TEST_CASE("mapped_file: an empty file has no bytes", "[io]") {
  const TempFolder folder;
  const MappedFile file(folder.write("empty", ""));
  CHECK(file.bytes().empty());
}

TEST_CASE("mapped_file: a move keeps the bytes where they are", "[io]") {
  const TempFolder folder;
  MappedFile first(folder.write("x", "hello"));
  const std::byte* at = first.bytes().data();
  MappedFile second(std::move(first));
  CHECK(first.bytes().empty());
  CHECK(second.bytes().data() == at);
  MappedFile third;
  third = std::move(second);
  CHECK(third.bytes().data() == at);
  CHECK(as_text(third.bytes()) == "hello");
}

TEST_CASE("mapped_file: stays readable after the name is gone", "[io]") {
  const TempFolder folder;
  const auto path = folder.write("x", "hello");
  const MappedFile file(path);
  std::filesystem::remove(path);
  CHECK(as_text(file.bytes()) == "hello");
}

TEST_CASE("mapped_file: says what is wrong with a path", "[io]") {
  const TempFolder folder;
  CHECK_THROWS_WITH(MappedFile(folder / "missing"),
                    Contains("missing: cannot open it: No such file or directory"));
  CHECK_THROWS_AS(MappedFile(folder / "missing"), file_error);
  CHECK_THROWS_WITH(MappedFile(folder.path()), Contains("is a folder, needs a regular file"));
  CHECK_THROWS_AS(MappedFile(""), file_error);
  const auto pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(MappedFile(pipe),
                    Contains("is no file of bytes, needs a regular file"));  // and does not wait
}
