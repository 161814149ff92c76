// Damaged files for every reader: whatever the damage, a reader answers or throws a depthbench::error.
// Any other exception (bad_alloc, length_error, out_of_range) fails the test, and so does memory that a
// damaged header merely claims; crashes and reads out of bounds are the sanitizers' to find.
#pragma once
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "depthbench/core/error.hpp"
#include "depthbench/core/rng.hpp"
#include "tests/catch.hpp"

namespace depthbench_test {

inline long peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// 1 if read() threw one of our errors, 0 if it accepted the file.
template <class Read>
int rejected(Read&& read, const std::string& what) {
  try {
    read();
    return 0;
  } catch (const depthbench::error& e) {
    if (std::string_view(e.what()).empty()) FAIL(what << ": an error without a text");
    return 1;
  } catch (const std::exception& e) {
    FAIL(what << ": threw something else: " << e.what());
  }
  return 0;
}

// read(content) for every proper prefix of `valid`; returns how many were rejected.
template <class Read>
std::size_t every_prefix(const std::string& valid, Read&& read) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < valid.size(); ++n)
    count += std::size_t(rejected([&] { read(valid.substr(0, n)); }, "prefix " + std::to_string(n)));
  return count;
}

// read(content) with 1 to 4 bytes of the first `reach` changed, `rounds` times; returns how many were
// rejected.
template <class Read>
std::size_t random_damage(const std::string& valid, std::size_t reach, int rounds, std::uint64_t seed,
                          Read&& read) {
  const long before = peak_memory_mib();
  const depthbench::Rng rng(seed);
  std::uint64_t draw = 0;
  std::size_t count = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = valid;
    for (std::uint64_t n = 1 + rng.below(draw++, 4); n > 0; --n) {
      char& c = damaged[rng.below(draw++, reach)];
      switch (rng.below(draw++, 4)) {
        case 0:
          c = char(c ^ (1 << rng.below(draw++, 8)));
          break;
        case 1:
          c = "0123456789-[]{}\":,"[rng.below(draw++, 18)];
          break;  // what headers are made of
        case 2:
          c = char(0xff);
          break;
        default:
          c = char(rng.below(draw++, 256));
      }
    }
    count += std::size_t(rejected([&] { read(damaged); }, "round " + std::to_string(round)));
  }
  CHECK(peak_memory_mib() - before < 512);
  return count;
}

}  // namespace depthbench_test
