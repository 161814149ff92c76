#include "depthbench/io/atomic_file.hpp"

#include <sys/wait.h>

#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/catch.hpp"
#include "tests/io/temp_folder.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Catch::Contains;

namespace {
int files_in(const TempFolder& folder) {
  return int(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}
}  // namespace

TEST_CASE("atomic_file: the whole content appears at commit, not before", "[io]") {
  const TempFolder folder;
  const auto path = folder.write("x", "old");
  AtomicFile file(path);
  file.write("new ");
  file.write(as_byte_span("bytes"));
  CHECK(read_whole(path) == "old");
  file.commit();
  CHECK(read_whole(path) == "new bytes");
  CHECK(files_in(folder) == 1);
  CHECK_THROWS_WITH(file.write("more"), Contains("is written already"));
  CHECK_THROWS_WITH(file.commit(), Contains("is written already"));
}

TEST_CASE("atomic_file: an exception leaves the old file and nothing else", "[io]") {
  const TempFolder folder;
  const auto path = folder.write("x", "old");
  CHECK_THROWS_AS(write_file_atomically(path,
                                        [](AtomicFile& file) {
                                          file.write("half");
                                          throw std::runtime_error("stop");
                                        }),
                  std::runtime_error);
  CHECK(read_whole(path) == "old");
  CHECK(files_in(folder) == 1);
  { const AtomicFile abandoned(folder / "y"); }
  CHECK(files_in(folder) == 1);
}

TEST_CASE("atomic_file: two writers of one name do not disturb each other; the last commit wins", "[io]") {
  const TempFolder folder;
  AtomicFile a(folder / "x"), b(folder / "x");
  a.write("a");
  b.write("b");
  a.commit();
  CHECK(read_whole(folder / "x") == "a");
  b.commit();
  CHECK(read_whole(folder / "x") == "b");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("atomic_file: a killed writer leaves the old file, and the next one writes", "[io]") {
  const TempFolder folder;
  const auto path = folder.write("x", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write("half");
    ::kill(::getpid(), SIGKILL);
  }
  REQUIRE(child > 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFSIGNALED(status));
  CHECK(read_whole(path) == "old");
  write_file_atomically(path, [](AtomicFile& file) { file.write("new"); });
  CHECK(read_whole(path) == "new");
}

TEST_CASE("atomic_file: an empty file and a bare name", "[io]") {
  const TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  write_file_atomically("bare", [](AtomicFile&) {});
  std::filesystem::current_path(before);
  CHECK(std::filesystem::file_size(folder / "bare") == 0);
}

TEST_CASE("atomic_file: says what is wrong with a path", "[io]") {
  const TempFolder folder;
  CHECK_THROWS_WITH(AtomicFile(folder / "no/such/x"),
                    Contains("cannot create") && Contains("No such file or directory"));
  CHECK_THROWS_WITH(AtomicFile(folder.path()), Contains("is a folder, needs a file name"));
  CHECK_THROWS_AS(AtomicFile(folder.path()), file_error);
}
