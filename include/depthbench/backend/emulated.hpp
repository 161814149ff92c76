// A GPU's way of running kernels, on the CPU: every launch of a block becomes an emulated block (emulated_block.hpp). Slow
// and exact: for tests of the lines that a GPU runs, at small shapes. Memory and matrix products are the CPU's.
//   EmulatedDevice<> device;   Transformer<EmulatedDevice<>, double> model(device, ...);
// Block: the engine. Warp 8 instead of a GPU's 32 lets narrow rows fill several warps.
#pragma once
#include <deque>
#include <functional>
#include <utility>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/backend/emulated_block.hpp"
#include "depthbench/backend/simt_geometry.hpp"
#include "depthbench/backend/staged_copy.hpp"

namespace depthbench {

template <class Block_ = FiberBlock<8>> class EmulatedDevice : public CpuDevice<PlainGemm> {
  using Host = CpuDevice<PlainGemm>;

 public:
  using Block = Block_;
  using Prim = EmulatedPrim<Block>;
  static constexpr bool simt = true;
  static constexpr int teams = 5;  // not the CPU's number: tokens are cut otherwise

  explicit EmulatedDevice(Schedule schedule = Schedule::forward) : Host(1), schedule_(schedule) {}

  std::int64_t blocks_run() const { return blocks_run_; }
  std::int64_t launches() const { return launches_; }  // that a GPU would get: kernels, products, clears, copies

  template <Mode M, class S, class Program, class Args>
  void run(const Program& program, const Args& args, int tokens, int d) {
    using R = S;
    using Team = SimtTeam<R, simt_width_of<R, void>(), simt_packs_of<Program>(), Prim>;
    launch([=, this] {
      const SimtGeometry g = simt_rows<Team, Program>(d, Block::warp, M == Mode::Bwd);
      for (int k = 0; k < teams; ++k) {
        std::vector<typename Team::Pack> sums(g.sums_bytes / sizeof(typename Team::Pack) + 1);
        block(g, [&](const Prim& prim) {
          Team team(d, prim, sums.data());
          run_program<M, S>(program, team, args, k, tokens, teams, k);
        });
      }
    });
  }
  template <class R, class Body> void for_tiles(int tokens, int tile, int d, const Body& body) {
    using Team = SimtTeam<R, simt_width_of<R, Body>(), 1, Prim>;
    launch([=, this] {
      for (int first = 0; first < tokens; first += tile)
        block(simt_tiles<Team>(d, Block::warp), [&](const Prim& prim) {
          Team team(d, prim, nullptr);
          body(team, first, std::min(tokens, first + tile));
        });
    });
  }
  template <class R, class Body> void for_packs(std::size_t n, const Body& body) {
    constexpr int W = simt_width_of<R, Body>();
    const auto timing = timed(Section::elementwise, double(n) * double(body.flops()), double(n) * sizeof(R) * double(body.moves()));
    launch([=] { if (n % W == 0) each_pack<Lane<R, W>>(n, body); else each_pack<Lane<R, 1>>(n, body); });
  }
  template <class Body> void for_elements(std::size_t n, const Body& body) {
    launch([=] { for (std::size_t i = 0; i < n; ++i) body(i, 1); });
  }
  template <class R, class Body> void blocks(int count, const Body& body) {
    launch([=, this] {
      for (int i = 0; i < count; ++i)
        block({Body::threads, std::size_t(Body::shared_reals) * sizeof(R), 0}, [&](const Prim& prim) { body(prim, i); });
    });
  }
  template <class R> void fold(const R* part, std::size_t n, R* out, bool add) {
    launch([=] {
      for (std::size_t i = 0; i < n; ++i) {
        R s = add ? out[i] : R(0);
        for (int k = 0; k < teams; ++k) s += part[std::size_t(k) * n + i];
        out[i] = s;
      }
    });
  }
  template <class T> void zero(T* p, std::size_t n) {
    launch([=, this] { Host::zero(p, n); });
  }
  template <class T> void copy(T* to, const T* from, std::size_t n) {
    launch([=, this] { Host::copy(to, from, n); });
  }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc) { gemm(g, beta, c, ldc, products()); }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc, Products products) {
    launch([=, this] { Host::gemm(g, beta, c, ldc, products); });
  }

  // ---- between the host's memory and tensors: what goes there travels with the launch, what comes back must be waited for
  template <class T> void upload(T* to, const T* from, std::size_t n) {
    launch([to, sent = std::vector<T>(from, from + n)] { std::copy(sent.begin(), sent.end(), to); });
  }
  template <class T> void download(T* to, const T* from, std::size_t n) {
    if (capturing_) fail<error>("emulated: {} numbers are read back within work that is captured", n);
    Host::download(to, from, n);
  }
  template <class T> T read(const T* p) {
    T x;
    download(&x, p, 1);
    return x;
  }
  template <class T> StagedCopy<EmulatedDevice, T> stage(std::span<const T> list) { return {*this, list}; }

  // ---- work that is kept, to be done again (repeat.hpp). While it is captured nothing is done.
  static constexpr bool replays = true;
  using Pool = Memory<Host>;
  using Graph = std::vector<std::function<void()>>;

  Pool& memory() { return *pool_; }
  Pool* add_pool() { return &pools_.emplace_back(*this); }
  auto use_pool(Pool* pool) {
    struct Used {
      EmulatedDevice& device;
      Pool* before;
      ~Used() { device.pool_ = before; }
    };
    return Used{*this, std::exchange(pool_, pool)};
  }
  template <class F> Graph capture(F&& work) {
    Graph graph;
    struct Capturing {
      Graph*& to;
      ~Capturing() { to = nullptr; }
    } capturing{capturing_ = &graph};
    work();
    return graph;
  }
  void replay(const Graph& graph) { for (const auto& work : graph) work(); }

 private:
  template <class F> void launch(F work) {
    ++launches_;
    if (capturing_) capturing_->emplace_back(std::move(work));
    else work();
  }
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
  std::deque<Pool> pools_;  // as long as the device: whoever holds a block of theirs may give it back late
  Pool* pool_ = &Host::memory();
  Graph* capturing_ = nullptr;
};

}  // namespace depthbench
