// A GPU's way of running kernels, on the CPU: every launch of a block becomes an emulated block (emulated_block.hpp). Slow
// and exact: for tests of the lines that a GPU runs, at small shapes. Memory and matrix products are the CPU's.
//   EmulatedDevice<> device;   Transformer<EmulatedDevice<>, double> model(device, ...);
// Block: the engine. Warp 8 instead of a GPU's 32 lets narrow rows fill several warps.
#pragma once
#include "depthbench/backend/cpu.hpp"
#include "depthbench/backend/emulated_block.hpp"
#include "depthbench/backend/simt_geometry.hpp"

namespace depthbench {

template <class Block_ = FiberBlock<8>> class EmulatedDevice : public CpuDevice<PlainGemm> {
 public:
  using Block = Block_;
  using Prim = EmulatedPrim<Block>;
  static constexpr bool simt = true;
  static constexpr int teams = 5;  // not the CPU's number: tokens are cut otherwise

  explicit EmulatedDevice(Schedule schedule = Schedule::forward) : CpuDevice<PlainGemm>(1), schedule_(schedule) {}

  std::int64_t blocks_run() const { return blocks_run_; }
  std::int64_t launches() const { return launches_; }  // that a GPU would get: kernels, products, clears, copies

  template <Mode M, class S, class Program, class Args>
  void run(const Program& program, const Args& args, int tokens, int d) {
    using R = S;
    using Team = SimtTeam<R, simt_width_of<R, void>(), simt_packs_of<Program>(), Prim>;
    const SimtGeometry g = simt_rows<Team, Program>(d, Block::warp, M == Mode::Bwd);
    ++launches_;
    for (int k = 0; k < teams; ++k) {
      std::vector<typename Team::Pack> sums(g.sums_bytes / sizeof(typename Team::Pack) + 1);
      block(g, [&](const Prim& prim) {
        Team team(d, prim, sums.data());
        run_program<M, S>(program, team, args, k, tokens, teams, k);
      });
    }
  }
  template <class R, class Body> void for_tiles(int tokens, int tile, int d, const Body& body) {
    using Team = SimtTeam<R, simt_width_of<R, Body>(), 1, Prim>;
    ++launches_;
    for (int first = 0; first < tokens; first += tile)
      block(simt_tiles<Team>(d, Block::warp), [&](const Prim& prim) {
        Team team(d, prim, nullptr);
        body(team, first, std::min(tokens, first + tile));
      });
  }
  template <class R, class Body> void for_packs(std::size_t n, const Body& body) {
    constexpr int W = simt_width_of<R, Body>();
    const auto timing = timed(Section::elementwise, double(n) * double(body.flops()), double(n) * sizeof(R) * double(body.moves()));
    ++launches_;
    if (n % W == 0) each_pack<Lane<R, W>>(n, body);
    else each_pack<Lane<R, 1>>(n, body);
  }
  template <class Body> void for_elements(std::size_t n, const Body& body) {
    ++launches_;
    for (std::size_t i = 0; i < n; ++i) body(i, 1);
  }
  template <class R, class Body> void blocks(int count, const Body& body) {
    ++launches_;
    for (int i = 0; i < count; ++i)
      block({Body::threads, std::size_t(Body::shared_reals) * sizeof(R), 0}, [&](const Prim& prim) { body(prim, i); });
  }
  template <class R> void fold(const R* part, std::size_t n, R* out, bool add) {
    ++launches_;
    for (std::size_t i = 0; i < n; ++i) {
      R s = add ? out[i] : R(0);
      for (int k = 0; k < teams; ++k) s += part[std::size_t(k) * n + i];
      out[i] = s;
    }
  }
  template <class T> void zero(T* p, std::size_t n) {
    ++launches_;
    CpuDevice<PlainGemm>::zero(p, n);
  }
  template <class T> void copy(T* to, const T* from, std::size_t n) {
    ++launches_;
    CpuDevice<PlainGemm>::copy(to, from, n);
  }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc) { gemm(g, beta, c, ldc, products()); }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc, Products products) {
    ++launches_;
    CpuDevice<PlainGemm>::gemm(g, beta, c, ldc, products);
  }

 private:
  template <class P, class Body> static void each_pack(std::size_t n, const Body& body) {
    for (std::size_t i = 0; i < n; i += P::width) body.template at<P>(i, int(std::min<std::size_t>(n - i, 1 << 20)));
  }
  template <class F> void block(const SimtGeometry& g, const F& f) {
    ++blocks_run_;
    Block b(g.threads, g.shared_bytes, schedule_);
    b.run([&](int rank) { f(Prim{&b, rank}); });
  }

  Schedule schedule_;
  std::int64_t blocks_run_ = 0, launches_ = 0;
};

}  // namespace depthbench
