#include "depthbench/core/memory.hpp"

#include <cstdlib>
#include <cstring>
#include <set>

#include "tests/catch.hpp"

using namespace depthbench;

namespace {

struct CountingSource {
  int slabs = 0;
  std::size_t bytes = 0;
  void* allocate(std::size_t n) {
    ++slabs;
    bytes += n;
    return std::aligned_alloc(64, (n + 63) / 64 * 64);
  }
  void deallocate(void* p, std::size_t n) {
    --slabs;
    bytes -= n;
    std::free(p);
  }
};

}  // namespace

TEST_CASE("memory: released blocks of a size are handed out again, nothing more is taken", "[core]") {
  CountingSource source;
  {
    Memory<CountingSource> memory(source);
    std::vector<void*> first;
    for (int step = 0; step < 5; ++step) {
      std::vector<void*> now;
      for (const std::size_t n : {1000, 5000, 1000, 70000}) now.push_back(memory.acquire(n));
      if (step == 0) first = now;
      CHECK(std::set<void*>(now.begin(), now.end()) == std::set<void*>(first.begin(), first.end()));
      memory.release(now[0], 1000);
      memory.release(now[1], 5000);
      memory.release(now[2], 1000);
      memory.release(now[3], 70000);
      CHECK(memory.in_use() == 0);
      CHECK(memory.reserved() == source.bytes);
      CHECK(source.slabs == 1);
    }
  }
  CHECK(source.slabs == 0);
  CHECK(source.bytes == 0);
}

TEST_CASE("memory: blocks do not overlap, are aligned, and may be written to the end", "[core]") {
  CountingSource source;
  Memory<CountingSource> memory(source);
  struct Block { unsigned char* p; std::size_t n; unsigned char mark; };
  std::vector<Block> blocks;
  for (int i = 0; i < 300; ++i) {
    const std::size_t n = std::size_t(i) * 37 % 5000 +
                          (i % 50 == 0 ? std::size_t{9} << 20 : 0);  // some have slabs of their own
    auto* p = memory.acquire<unsigned char>(n);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    std::memset(p, i % 251, n);
    blocks.push_back({p, n, static_cast<unsigned char>(i % 251)});
  }
  std::size_t wrong = 0;
  for (const auto& b : blocks) for (std::size_t i = 0; i < b.n; ++i) wrong += b.p[i] != b.mark;
  CHECK(wrong == 0);
  for (const auto& b : blocks) memory.release(b.p, b.n);
  CHECK(memory.in_use() == 0);
}

TEST_CASE("memory: a small block uses no slab of its own, and large slabs are not lost", "[core]") {
  CountingSource source;
  Memory<CountingSource> memory(source);
  for (int i = 0; i < 1000; ++i) memory.acquire(100);
  CHECK(source.slabs == 1);
  memory.acquire(std::size_t{40} << 20);  // more than a slab
  CHECK(source.slabs == 2);
  memory.acquire(100);  // the first slab still has room
  CHECK(source.slabs == 2);
}

TEST_CASE("memory: counts what is out, and the most that was", "[core]") {
  CountingSource source;
  Memory<CountingSource> memory(source);
  void* a = memory.acquire(10000);
  const std::size_t one = memory.in_use();
  CHECK(one >= 10000);
  CHECK(one < 10000 + 256);
  void* b = memory.acquire(10000);
  CHECK(memory.in_use() == 2 * one);
  CHECK(memory.peak() == 2 * one);
  memory.release(a, 10000);
  memory.release(b, 10000);
  CHECK(memory.in_use() == 0);
  CHECK(memory.peak() == 2 * one);
  memory.reset_peak();
  CHECK(memory.peak() == 0);
  memory.acquire(10000);
  CHECK(memory.peak() == one);
}

TEST_CASE("memory: large blocks are staggered, so that they do not evict each other", "[core]") {
  CountingSource source;
  Memory<CountingSource> memory(source);
  std::set<std::uintptr_t> offsets;
  for (int i = 0; i < 8; ++i)
    offsets.insert(reinterpret_cast<std::uintptr_t>(memory.acquire(1 << 16)) % 4096);
  CHECK(offsets.size() == 8);
}
