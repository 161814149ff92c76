// The CPU: who runs kernel bodies when there is no GPU.
// Work is cut by shapes, never by the number of threads, so results have the same bits on any number of them.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "depthbench/backend/gemm.hpp"
#include "depthbench/backend/rounded_operand.hpp"
#include "depthbench/core/memory.hpp"
#include "depthbench/core/profile.hpp"
#include "depthbench/core/thread_pool.hpp"
#include "depthbench/kernel/program.hpp"

namespace depthbench {

template <class Gemm_> class CpuDevice {
 public:
  using Gemm = Gemm_;
  static constexpr int teams = 16;  // partial sums of parameter gradients, whatever the number of threads
  static constexpr bool simt = false;  // bodies run on packs of a thread, not on the threads of a block
  static constexpr bool replays = false;  // cannot keep launches to do them again (repeat.hpp)

  explicit CpuDevice(int threads = 0) : pool_(threads), scratch_(std::size_t(pool_.size())), memory_(*this) {}

  static const char* gemm_name() { return Gemm::name; }
  int threads() const { return pool_.size(); }
  ThreadPool& pool() { return pool_; }
  Memory<CpuDevice>& memory() { return memory_; }
  Profile& profile() { return profile_; }
  Profile::Timed timed(Section s, double flops, double bytes) { return {profile_, s, flops, bytes}; }

  // ---- raw memory, for Memory
  void* allocate(std::size_t bytes) {
    const std::size_t n = pages(bytes);
    void* p = ::mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) fail<error>("out of memory: {} MB for tensors could not be had", bytes >> 20);
#if defined(MADV_HUGEPAGE)
    ::madvise(p, n, MADV_HUGEPAGE);
#endif
    return p;
  }
  void deallocate(void* p, std::size_t bytes) { ::munmap(p, pages(bytes)); }

  template <class T> void zero(T* p, std::size_t n) {
    for_chunks(n, [&](std::size_t first, std::size_t count) { std::memset(static_cast<void*>(p + first), 0, count * sizeof(T)); });
  }
  template <class T> void copy(T* to, const T* from, std::size_t n) {
    for_chunks(n, [&](std::size_t first, std::size_t count) { std::memcpy(to + first, from + first, count * sizeof(T)); });
  }

  // p[i] = value(i), made on the host: initial values.
  template <class T, class F> void generate(T* p, std::size_t n, const F& value) {
    for_chunks(n, [&](std::size_t first, std::size_t count) { for (std::size_t i = first; i < first + count; ++i) p[i] = value(i); });
  }
  // ---- between the host's memory and tensors, which here are one
  static constexpr bool host_memory = true;
  template <class T> void upload(T* to, const T* from, std::size_t n) { copy(to, from, n); }
  template <class T> void download(T* to, const T* from, std::size_t n) { copy(to, from, n); }
  template <class T> T read(const T* p) { return *p; }  // waits, on a device that works by itself
  // A list of the host's for bodies to read, while the result lives.
  template <class T> struct Staged {
    const T* p;
    const T* data() const { return p; }
  };
  template <class T> Staged<T> stage(std::span<const T> list) { return {list.data()}; }

  // ---- work
  // body(first, count) over chunks of [0, n); the chunks depend on n only.
  template <class Body> void for_chunks(std::size_t n, const Body& body) {
    constexpr std::size_t chunk = std::size_t{1} << 15;
    const int count = int((n + chunk - 1) / chunk);
    pool_.run(count, [&](int i, int) {
      const std::size_t first = std::size_t(i) * chunk;
      body(first, first + chunk < n ? chunk : n - first);
    });
  }

  // body(first, count) over any cut of [0, n): a body that treats every number by itself.
  template <class Body> void for_elements(std::size_t n, const Body& body) { for_chunks(n, body); }

  // An elementwise body over n numbers, a pack at a time.
  template <class R, class Body> void for_packs(std::size_t n, const Body& body) {
    using P = cpu_pack<R>;
    const auto timing = timed(Section::elementwise, double(n) * double(body.flops()), double(n) * sizeof(R) * double(body.moves()));
    for_chunks(n, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = 0; i < count; i += P::width) {
        const std::size_t left = count - i;
        body.template at<P>(first + i, left < P::width ? int(left) : P::width);
      }
    });
  }

  // A row program over `tokens` rows of width d.
  template <Mode M, class S, class Program, class Args>
  void run(const Program& program, const Args& args, int tokens, int d) {
    using R = S;
    pool_.run(teams, [&](int k, int worker) {
      const int first = int(std::int64_t(tokens) * k / teams), last = int(std::int64_t(tokens) * (k + 1) / teams);
      SerialTeam<R> team(d, scratch<R>(worker, d), scratch_rows);
      run_program<M, S>(program, team, args, first, last, 1, k);
    });
  }
  // A kernel body(team, first, last) over tiles of `tile` tokens; the body holds no rows of its own.
  template <class R, class Body> void for_tiles(int tokens, int tile, int d, const Body& body) {
    pool_.run((tokens + tile - 1) / tile, [&](int k, int) {
      const int first = k * tile, last = first + tile < tokens ? first + tile : tokens;
      SerialTeam<R> team(d, nullptr, 0);
      body(team, first, last);
    });
  }

  // out (n) (+)= sum over teams of part (teams, n), in order.
  template <class R> void fold(const R* part, std::size_t n, R* out, bool add) {
    for_chunks(n, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) {
        R s = add ? out[i] : R(0);
        for (int k = 0; k < teams; ++k) s += part[std::size_t(k) * n + i];
        out[i] = s;
      }
    });
  }

  // How float products are formed. bf16: inputs rounded to bfloat16, sums in float; the arrays stay float.
  void set_products(Products p) { products_ = p; }
  Products products() const { return products_; }
  // Whether products read bfloat16 arrays, which a caller who needs them twice makes once (tape/product_input.hpp).
  bool reads_bf16() const { return Gemm::bf16 && products_ == Products::bf16; }
  // to (rows, cols), dense, of from (rows, ld); T: bfloat16, or float to hold what bfloat16 can
  template <class T> void round_rows(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t cols, T* to) {
    const auto row = [&](std::int64_t at_from, std::int64_t at_to, std::int64_t count) {
      const float* __restrict x = from + at_from;
      T* __restrict y = to + at_to;
      for (std::int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<T, float>) y[i] = float(bfloat16(x[i])); else y[i] = T(x[i]);
      }
    };
    if (ld == cols || rows == 1)  // one long row
      return for_chunks(std::size_t(rows * cols), [&](std::size_t i, std::size_t n) { row(std::int64_t(i), std::int64_t(i), std::int64_t(n)); });
    constexpr std::int64_t tile = 32;
    pool_.run(int((rows + tile - 1) / tile), [&](int k, int) {
      for (std::int64_t r = k * tile; r < std::min(rows, (k + 1) * tile); ++r) row(r * ld, r * cols, cols);
    });
  }

  // C (m, n) = op(A) op(B) + beta C, cut into tiles that depend on the shape only.
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc) { gemm(g, beta, c, ldc, products_); }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc, Products products) {
    if (g.m == 0 || g.n == 0) return;
    const auto timing = timed(Section::gemm, g.flops(), g.bytes(beta != R(0)));
    if constexpr (std::is_same_v<R, float>) {
      using T = std::conditional_t<Gemm::bf16, bfloat16, float>;
      if (products == Products::bf16) return gemm_tiles(RoundedOperands<CpuDevice, T>(*this, g).args(g), beta, c, ldc);
    }
    gemm_tiles(g, beta, c, ldc);
  }

 private:
  template <class T, class R> void gemm_tiles(const GemmArgs<T>& g, R beta, R* c, std::int64_t ldc) {
    const bool by_rows = g.m >= g.n;
    const std::int64_t extent = by_rows ? g.m : g.n, unit = 16;
    const double mflop = 2e-6 * double(g.m) * double(g.n) * double(g.k);
    std::int64_t tiles = mflop < 4 ? 1 : mflop < 64 ? 2 : mflop < 256 ? 4 : 8;
    if (tiles > extent / 32) tiles = extent < 64 ? 1 : 2;
    pool_.run(int(tiles), [&](int i, int) {
      const std::int64_t first = extent * i / tiles / unit * unit;
      const std::int64_t last = i + 1 == tiles ? extent : extent * (i + 1) / tiles / unit * unit;
      GemmArgs<T> part = g;
      R* out = c;
      if (by_rows) {
        part.m = last - first;
        part.a += first * (g.op_a == Op::None ? g.lda : 1);
        out += first * ldc;
      } else {
        part.n = last - first;
        part.b += first * (g.op_b == Op::None ? 1 : g.ldb);
        out += first;
      }
      if (part.m > 0 && part.n > 0) Gemm::product(part, beta, out, ldc);
    });
  }
  static std::size_t pages(std::size_t bytes) { return (bytes + (std::size_t{2} << 20) - 1) >> 21 << 21; }

  static constexpr int scratch_rows = 96;  // more than any program holds at once
  template <class R> void* scratch(int worker, int d) {
    constexpr std::size_t line = 64;
    const std::size_t row = (std::size_t(d) * sizeof(R) + line - 1) / line * line;
    auto& s = scratch_[std::size_t(worker)];
    if (s.bytes < row * scratch_rows) {
      s.bytes = row * scratch_rows;
      s.begin.reset(static_cast<std::byte*>(::operator new(s.bytes, std::align_val_t{line})));
    }
    return s.begin.get();
  }
  struct Free { void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); } };
  struct alignas(64) Scratch { std::unique_ptr<std::byte, Free> begin; std::size_t bytes = 0; };

  ThreadPool pool_;
  std::vector<Scratch> scratch_;
  Memory<CpuDevice> memory_;
  Profile profile_;
  Products products_ = Products::fp32;
};

using Cpu = CpuDevice<DefaultGemm>;

}  // namespace depthbench
