// A device that allocates nothing and computes nothing: models run on it to be counted.
//   ShapeOnly device;
//   Transformer<ShapeOnly, float> model(device, config, designs.make("hc"));     // the very code that trains
//   device.profile().start();  ...  device.memory().peak(), device.profile().at(part, pass, section)
// Addresses are distinct and never looked at; the memory is that of core/memory.hpp, so what is in use, and its peak, are
// those of a Cpu of as many threads, to the byte. FLOPs and bytes are what ops declare; a row program's are found by
// running it on counted numbers (kernel/counted.hpp). Time is no longer than the list of ops.
#pragma once
#include <algorithm>
#include <span>
#include <cstdint>
#include <thread>

#include "depthbench/backend/gemm.hpp"
#include "depthbench/backend/rounded_operand.hpp"
#include "depthbench/core/memory.hpp"
#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/counted.hpp"

namespace depthbench {

class ShapeOnly {
 public:
  static constexpr int teams = 16;  // as the Cpu's: partial sums take memory

  explicit ShapeOnly(int threads = 0) : threads_(threads > 0 ? threads : std::max(1, int(std::thread::hardware_concurrency()))), memory_(*this) {
    if (threads < 0) fail<config_error>("ShapeOnly: threads is {}, needs 0 (all) or more", threads);
  }

  int threads() const { return threads_; }
  Memory<ShapeOnly>& memory() { return memory_; }
  Profile& profile() { return profile_; }
  Profile::Timed timed(Section s, double flops, double bytes) { return {profile_, s, flops, bytes}; }

  void* allocate(std::size_t bytes) { return reinterpret_cast<void*>(std::exchange(next_, next_ + bytes)); }
  void deallocate(void*, std::size_t) {}

  // ---- work that is left out
  struct NoPool {
    template <class Body> void run(int, const Body&) {}
  };
  NoPool pool() { return {}; }
  template <class T> void zero(T*, std::size_t) {}
  template <class T> void copy(T*, const T*, std::size_t) {}
  template <class T, class F> void generate(T*, std::size_t, const F&) {}
  static constexpr bool simt = false, host_memory = true, replays = false;
  template <class T> void upload(T*, const T*, std::size_t) {}
  template <class T> void download(T*, const T*, std::size_t) {}
  template <class T> T read(const T*) { return T(); }
  template <class T> struct Staged {
    const T* p;
    const T* data() const { return p; }
  };
  template <class T> Staged<T> stage(std::span<const T> list) { return {list.data()}; }
  template <class Body> void for_chunks(std::size_t, const Body&) {}
  template <class Body> void for_elements(std::size_t, const Body&) {}
  template <class Body> void for_rows(int, const Body&) {}
  template <class Body> void single(const Body&) {}
  template <class R, class Body> void for_tiles(int, int, int, const Body&) {}
  template <class R> void fold(const R*, std::size_t, R*, bool) {}

  // ---- work that is counted
  template <class R, class Body> void for_packs(std::size_t n, const Body& body) {
    timed(Section::elementwise, double(n) * double(body.flops()), double(n) * sizeof(R) * double(body.moves()));
  }
  template <Mode M, class S, class Program, class Args> void run(const Program& program, const Args&, int tokens, int d) {
    const ProgramFlops f = program_flops<M>(program, d);
    profile_.count(Section::rows, tokens * f.mixing, 0);  // bytes: the op's
    const auto norm = profile_.within(Part::norm);
    profile_.count(Section::rows, tokens * f.norm, 0);
  }
  void set_products(Products p) { products_ = p; }
  Products products() const { return products_; }
  bool reads_bf16() const { return DefaultGemm::bf16 && products_ == Products::bf16; }
  template <class T> void round_rows(const float*, std::int64_t, std::int64_t, std::int64_t, T*) {}
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc) { gemm(g, beta, c, ldc, products_); }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R*, std::int64_t, Products products) {
    if (g.m == 0 || g.n == 0) return;
    const auto timing = timed(Section::gemm, g.flops(), g.bytes(beta != R(0)));
    if constexpr (std::is_same_v<R, float>)
      if (products == Products::bf16) RoundedOperands<ShapeOnly, std::conditional_t<DefaultGemm::bf16, bfloat16, float>>(*this, g);
  }

 private:
  int threads_;
  std::uintptr_t next_ = std::uintptr_t{1} << 20;  // not null, aligned
  Memory<ShapeOnly> memory_;
  Profile profile_;
  Products products_ = Products::fp32;
};

}  // namespace depthbench
