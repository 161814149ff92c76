#include "depthbench/io/posix.hpp"

#include <utility>

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("posix: a descriptor is closed once, by its last owner", "[io]") {
  const int fd = ::open("/dev/null", O_RDONLY);
  REQUIRE(fd >= 0);
  {
    FileDescriptor first(fd);
    FileDescriptor second(std::move(first));
    CHECK_FALSE(first);
    CHECK(second.get() == fd);
    CHECK(first.close());  // nothing to close is no error
    CHECK(::fcntl(fd, F_GETFD) != -1);
  }
  CHECK(::fcntl(fd, F_GETFD) == -1);
}

TEST_CASE("posix: errno in words", "[io]") {
  CHECK(system_error_text(ENOENT) == "No such file or directory");
}
