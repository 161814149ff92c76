// Attention on tensor cores, on emulated blocks with a GPU's warps, against the CPU's attention in double.
//
// The bound, number by number. u = 2^-8 is the largest relative error of rounding to bfloat16 (8 bits of significand: 1 + 2^-8
// becomes 1), e = 2^-24 that of a float, r the error of rounding the inputs: u where the reference has them unrounded, 0 where it
// has what the kernel rounds them to. To first order, with q rotated and scaled, k rotated, A = sum |q k| and D = sum |dout v| over
// channels; sums of n terms add n e:
//   scores           |err s_j| <= a = (2 r + (h + 8) e) max A + 4 e (max |s| + |lse| + 2)
//   probabilities    |err p_j| <= f p_j,   f = e^(2 a) - 1 + n e                    s, and lse, which is a mean of s
//   out              sum of p_j |v_j| (f + u + r)                                   u: p is rounded
//   dp_j - delta     (2 r + (h + 8) e) D + (h + 8) e sum |dout out| + sum |dout| |err out|
//   ds_j             |err| <= f |ds_j| + p_j |err (dp_j - delta)|, and u (|ds_j| + |err|) more in tiles, where it is rounded
//   dq, dk           sums of |err ds| |k|, |err ds| |q|, and r |ds| |k|, r |ds| |q|;   dv: sum of p |dout| (f + u + r)
// Depth slots are not rounded: no u and, for their keys and values, no r.
#include "depthbench/backend/emulated.hpp"
#include "depthbench/kernel/block_attention_run.hpp"
#include "depthbench/kernel/causal_attention.hpp"
#include "tests/catch.hpp"
#include "tests/emulated/faults.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

using Block = FiberBlock<32>;
using Prim = EmulatedPrim<Block>;
using Device = EmulatedDevice<Block>;
constexpr double u = 0x1p-8, e = 0x1p-24;

template <class R> struct Problem {
  AttentionShape s;
  RopeTable<R> rope;
  std::vector<R> q, k, v, dout;
  std::vector<std::vector<R>> slots;  // (B T, 2 Hkv h + 1): keys from column 1 on, then values
  bool add;                           // to gradients that are there
  int slot_width() const { return 2 * s.kv_width() + 1; }
};
std::vector<double> in_double(const std::vector<float>& x) { return {x.begin(), x.end()}; }

Problem<float> random_problem(const AttentionShape& s, int slots, bool add, RopeTable<float> rope) {
  const std::size_t n = std::size_t(s.batch) * s.seq;
  Problem<float> p{s, std::move(rope), {}, {}, {}, {}, {}, add};
  p.q = random_numbers<float>(n * s.width(), 1);
  p.k = random_numbers<float>(n * s.kv_width(), 2);
  p.v = random_numbers<float>(n * s.kv_width(), 3);
  p.dout = random_numbers<float>(n * s.width(), 4);
  for (int i = 0; i < slots; ++i) p.slots.push_back(random_numbers<float>(n * p.slot_width(), 5 + i));
  return p;
}
Problem<double> in_double(const Problem<float>& p) {
  Problem<double> d{p.s, {}, in_double(p.q), in_double(p.k), in_double(p.v), in_double(p.dout), {}, p.add};
  d.rope.seq = p.rope.seq;
  d.rope.head_dim = p.rope.head_dim;
  d.rope.cos = in_double(p.rope.cos);
  d.rope.sin = in_double(p.rope.sin);
  for (const auto& slot : p.slots) d.slots.push_back(in_double(slot));
  return d;
}

// Positions by quarter turns, which are exact in any number: the test rounds what the kernel rounds.
RopeTable<float> quarter_turns(int T, int h) {
  RopeTable<float> rope(T, h, 100);
  for (int t = 0; t < T; ++t) for (int j = 0; j < h / 2; ++j) {
    const std::size_t at = std::size_t(t) * (h / 2) + j;
    const int turns = (t * (j + 1) + j) % 4;
    rope.cos[at] = turns == 0 ? 1 : turns == 2 ? -1 : 0;
    rope.sin[at] = turns == 1 ? 1 : turns == 3 ? -1 : 0;
  }
  return rope;
}
// A problem whose v and dout need no rounding (delta is of dout as it comes), and whose q and k as_rounded() can round.
Problem<float> exact_problem(const AttentionShape& s, int slots, bool add) {
  auto p = random_problem(s, slots, add, quarter_turns(s.seq, s.head_dim));
  for (auto* x : {&p.v, &p.dout}) for (float& a : *x) a = float(depthbench::bfloat16(a));  // cblas has a bfloat16 too
  return p;
}
// Every head of every row turned, and multiplied by c.
template <Turn turn, class R>
std::vector<R> turned(const std::vector<R>& x, const AttentionShape& s, int heads, const RopeTable<R>& rope, R c) {
  std::vector<R> y(x.size());
  for (int row = 0; row < s.batch * s.seq; ++row) for (int head = 0; head < heads; ++head) {
    const std::size_t at = (std::size_t(row) * heads + head) * s.head_dim;
    rotate<turn>(x.data() + at, y.data() + at, s.head_dim, rope.cos_at(row % s.seq), rope.sin_at(row % s.seq), c);
  }
  return y;
}
// q and k that the kernel computes with: rounded as it rounds them.
Problem<double> as_rounded(const Problem<float>& p) {
  const auto rounded = [](std::vector<float> x) {
    for (float& a : x) a = float(depthbench::bfloat16(a));
    return in_double(x);
  };
  Problem<double> d = in_double(p);
  const auto& s = p.s;
  const double unscale = std::sqrt(double(s.head_dim));
  const auto q = rounded(turned<Turn::forward>(p.q, s, s.heads, p.rope, 1 / std::sqrt(float(s.head_dim))));
  const auto k = rounded(turned<Turn::forward>(p.k, s, s.kv_heads, p.rope, 1.f));
  d.q = turned<Turn::back>(q, s, s.heads, d.rope, unscale);
  d.k = turned<Turn::back>(k, s, s.kv_heads, d.rope, 1.0);
  return d;
}

// out, lse, dq, dk, dv, then one a slot
using Values = std::vector<std::vector<double>>;
const char* const names[] = {"out", "lse", "dq", "dk", "dv", "slot 0", "slot 1", "slot 2"};

// given: out and lse that the backward pass is to take instead of its own.
template <class D, class R> Values solve(D& device, const Problem<R>& p, const Values* given = nullptr) {
  const auto& s = p.s;
  std::vector<R> out(p.q.size()), lse(std::size_t(s.batch) * s.heads * s.seq);
  auto dq = random_numbers<R>(p.q.size(), 11), dk = random_numbers<R>(p.k.size(), 12), dv = random_numbers<R>(p.v.size(), 13);
  std::vector<std::vector<R>> grads;
  std::vector<DepthSlot<R>> slots;
  for (std::size_t i = 0; i < p.slots.size(); ++i) {
    R* g = grads.emplace_back(random_numbers<R>(p.slots[i].size(), 14 + i)).data();
    const R *k = p.slots[i].data() + 1, *v = k + s.kv_width();
    slots.push_back({k, v, p.slot_width(), p.slot_width(), g + 1, g + 1 + s.kv_width()});
  }
  causal_attention_forward(device, s, p.rope, p.q.data(), p.k.data(), p.v.data(), out.data(), lse.data(), slots);
  Values all = {{out.begin(), out.end()}, {lse.begin(), lse.end()}};
  if (given) {
    std::copy(given->at(0).begin(), given->at(0).end(), out.begin());
    std::copy(given->at(1).begin(), given->at(1).end(), lse.begin());
  }
  causal_attention_backward<D, R>(device, s, p.rope, p.q.data(), p.k.data(), p.v.data(), out.data(), lse.data(), p.dout.data(),
                                  {dq.data(), p.add}, {dk.data(), p.add}, {dv.data(), p.add}, slots);
  for (const auto* g : {&dq, &dk, &dv}) all.emplace_back(g->begin(), g->end());
  for (const auto& g : grads) all.emplace_back(g.begin(), g.end());
  return all;
}

// How far each number may be off. r: as above; own_out: the backward pass takes the kernel's own out and lse.
Values bounds_of(const Problem<double>& p, const Values& needs, double r, bool own_out) {
  const auto& s = p.s;
  const int T = s.seq, h = s.head_dim, extra = int(p.slots.size());
  const double scale = 1 / std::sqrt(double(h)), n = (s.group() * T + extra + 64) * e;
  const auto qr = turned<Turn::forward>(p.q, s, s.heads, p.rope, scale), kr = turned<Turn::forward>(p.k, s, s.kv_heads, p.rope, 1.0);
  Values bound;
  for (const auto& x : needs) bound.emplace_back(x.size(), 0.0);
  for (int b = 0; b < s.batch; ++b) for (int head = 0; head < s.heads; ++head) for (int t = 0; t < T; ++t) {
    const int g = head / s.group();
    const std::size_t at = ((std::size_t(b) * T + t) * s.heads + head) * h, row = (std::size_t(b) * s.heads + head) * T + t;
    const double *q = qr.data() + at, *grad = p.dout.data() + at, *out = needs[0].data() + at, lse = needs[1][row];
    struct Key { const double *k, *v; double *dk, *dv, rounds, r; };  // rounds: p and ds, once more
    std::vector<Key> keys;
    for (int j = 0; j <= t; ++j) {
      const std::size_t to = ((std::size_t(b) * T + j) * s.kv_heads + g) * h;
      keys.push_back({kr.data() + to, p.v.data() + to, bound[3].data() + to, bound[4].data() + to, u, r});
    }
    for (int i = 0; i < extra; ++i) {
      const std::size_t to = (std::size_t(b) * T + t) * p.slot_width() + 1 + std::size_t(g) * h, v = to + s.kv_width();
      keys.push_back({p.slots[i].data() + to, p.slots[i].data() + v, bound[5 + i].data() + to, bound[5 + i].data() + v, 0, 0});
    }
    const auto dot = [&](const double* x, const double* y) {
      double sum = 0, size = 0;
      for (int c = 0; c < h; ++c) sum += x[c] * y[c], size += std::fabs(x[c] * y[c]);
      return std::pair(sum, size);
    };
    double most = 0, size = 0;
    for (const Key& key : keys) {
      const auto [sum, terms] = dot(q, key.k);
      most = std::max(most, std::fabs(sum));
      size = std::max(size, terms);
    }
    const double a = (2 * r + (h + 8) * e) * size + 4 * e * (most + std::fabs(lse) + 2), f = std::expm1(2 * a) + n;
    bound[1][row] = a + n;
    for (const Key& key : keys) {
      const double w = std::exp(dot(q, key.k).first - lse);
      for (int c = 0; c < h; ++c) bound[0][at + c] += w * std::fabs(key.v[c]) * (f + key.rounds + key.r);
    }
    double err_delta = (h + 8) * e * dot(grad, out).second;
    if (own_out) for (int c = 0; c < h; ++c) err_delta += std::fabs(grad[c]) * bound[0][at + c];
    const double delta = dot(grad, out).first;
    for (const Key& key : keys) {
      const double w = std::exp(dot(q, key.k).first - lse);
      const auto [dp, terms] = dot(grad, key.v);
      const double ds = std::fabs(w * (dp - delta)), err = f * ds + w * ((2 * r + (h + 8) * e) * terms + err_delta);
      const double err_ds = err + key.rounds * (ds + err) + n * ds;
      for (int c = 0; c < h; ++c) {
        bound[2][at + c] += (err_ds + key.r * ds) * std::fabs(key.k[c]);
        key.dk[c] += (err_ds + r * ds) * std::fabs(q[c]);
        key.dv[c] += w * std::fabs(grad[c]) * (f + key.rounds + r + n);
      }
    }
  }
  // Errors turn back as sizes: each of a pair has a share of both.
  const auto turn_back = [&](std::vector<double>& x, int heads, double c) {
    RopeTable<double> sizes = p.rope;
    for (double& y : sizes.cos) y = std::fabs(y);
    for (double& y : sizes.sin) y = std::fabs(y);
    for (int token = 0; token < s.batch * T; ++token) for (int head = 0; head < heads; ++head) for (int j = 0; j < h / 2; ++j) {
      double &low = x[(std::size_t(token) * heads + head) * h + j], &high = (&low)[h / 2];
      const double co = sizes.cos_at(token % T)[j], si = sizes.sin_at(token % T)[j], first = low;
      low = c * (first * co + high * si);
      high = c * (high * co + first * si);
    }
  };
  turn_back(bound[2], s.heads, scale);
  turn_back(bound[3], s.kv_heads, 1);
  for (std::size_t i = 0; i < bound.size(); ++i) for (std::size_t j = 0; j < bound[i].size(); ++j)
    bound[i][j] = 1.02 * bound[i][j] + 4 * e * (std::fabs(needs[i][j]) + (i < 2 ? 0 : 4));  // higher orders; a sum with what was there
  return bound;
}
// Every error as a share of what it may be: the largest.
double worst_share(const Values& has, const Values& needs, const Values& bound, bool say = true) {
  double worst = 0;
  for (std::size_t i = 0; i < has.size(); ++i) {
    double share = 0;
    for (std::size_t j = 0; j < has[i].size(); ++j) {
      const double x = std::fabs(has[i][j] - needs[i][j]) / bound[i][j];
      if (!(x <= share)) share = std::isnan(x) ? INFINITY : x;
    }
    if (say) UNSCOPED_INFO(names[i] << ": " << share << " of the bound");
    worst = std::max(worst, share);
  }
  return worst;
}

Values on_tensor_cores(const Problem<float>& p, const Values* given = nullptr, Schedule schedule = Schedule::forward) {
  Device device(schedule);
  device.set_products(Products::bf16);
  return solve(device, p, given);
}
Values on_cpu(const Problem<double>& p) {
  Cpu cpu(1);
  return solve(cpu, p);
}
// Both passes apart, inputs rounded: what is left are the roundings of p and ds.
double share_of_rounded(const AttentionShape& s, int slots, bool add, Schedule schedule = Schedule::forward) {
  const auto p = exact_problem(s, slots, add);
  const auto rounded = as_rounded(p);
  const Values needs = on_cpu(rounded);
  return worst_share(on_tensor_cores(p, &needs, schedule), needs, bounds_of(rounded, needs, 0, false));
}
// All of it: unrounded inputs, angles of every size, one pass after the other.
double share_of_all(const AttentionShape& s, int slots, bool add) {
  const auto p = random_problem(s, slots, add, RopeTable<float>(s.seq, s.head_dim, 10000));
  const auto exact = in_double(p);
  const Values needs = on_cpu(exact);
  return worst_share(on_tensor_cores(p), needs, bounds_of(exact, needs, u, true));
}

}  // namespace

TEST_CASE("tensor attention: every number is within its bound", "[emulated]") {
  // batch, T, heads, KV heads, channels of a head
  CHECK(share_of_rounded({1, 70, 1, 1, 8}, 0, false) < 1);
  CHECK(share_of_rounded({2, 70, 4, 2, 16}, 1, true) < 1);
  CHECK(share_of_rounded({1, 131, 2, 1, 24}, 3, false) < 1);
  CHECK(share_of_rounded({1, 131, 2, 2, 64}, 1, true) < 1);
  CHECK(share_of_rounded({1, 131, 2, 1, 128}, 2, false) < 1);
  CHECK(share_of_rounded({1, 1, 3, 1, 10}, 1, true) < 1);  // one token; rows that are no whole 16 bytes
  CHECK(share_of_rounded({1, 64, 1, 1, 30}, 0, false) < 1);
  CHECK(share_of_rounded({1, 65, 1, 1, 2}, 0, false) < 1);
  CHECK(share_of_rounded({1, 70, 1, 1, 48}, 0, true) < 1);
  CHECK(share_of_rounded({1, 70, 1, 1, 72}, 1, false) < 1);
}
TEST_CASE("tensor attention: with all its roundings, both passes in a row", "[emulated]") {
  CHECK(share_of_all({1, 70, 2, 1, 16}, 2, false) < 1);
  CHECK(share_of_all({1, 131, 2, 1, 64}, 1, true) < 1);
}
TEST_CASE("tensor attention: the same bits again, and in any order of turns", "[emulated]") {
  const auto p = random_problem({1, 70, 4, 2, 24}, 1, true, RopeTable<float>(70, 24, 100));
  const Values once = on_tensor_cores(p);
  for (const auto schedule : {Schedule::forward, Schedule::reverse, Schedule::shuffled})
    CHECK(on_tensor_cores(p, nullptr, schedule) == once);
}

TEST_CASE("tensor attention: runs for floats, where products are bf16 and warps are those of tensor cores", "[emulated]") {
  const auto p = random_problem({1, 70, 2, 1, 16}, 1, false, RopeTable<float>(70, 16, 100));
  const Values needs = on_cpu(in_double(p)), tensor = on_tensor_cores(p);
  const auto on = [&](auto&& device, Products products) {
    device.set_products(products);
    return solve(device, p);
  };
  CHECK(largest(tensor, needs) > 1e-4);
  CHECK(largest(on(Device(), Products::fp32), needs) < 1e-5);
  CHECK(largest(on(EmulatedDevice<FiberBlock<8>>(), Products::bf16), needs) < 1e-5);
  Device device;
  device.set_products(Products::bf16);
  CHECK(largest(solve(device, in_double(p)), needs) < 1e-12);
  const auto too_wide = random_problem({1, 2, 1, 1, 130}, 0, false, RopeTable<float>(2, 130, 100));
  CHECK(message_of([&] { solve(device, too_wide); }) == "causal_attention: the head size is 130, blocks of threads take 128 at most");
}

namespace {

struct Matrices {
  int a[16][16], b[16][8], c[16][8];
};
Matrices integers() {
  Matrices m;
  for (int i = 0; i < 16; ++i) for (int k = 0; k < 16; ++k) m.a[i][k] = (7 * i + 5 * k + i * k) % 23 - 11;
  for (int k = 0; k < 16; ++k) for (int j = 0; j < 8; ++j) m.b[k][j] = (3 * k + 11 * j + k * j * j) % 19 - 9;
  for (int i = 0; i < 16; ++i) for (int j = 0; j < 8; ++j) m.c[i][j] = 100 * i - j;
  return m;
}
// Whether c + a b is right in two warps; change(a, b) of every lane's fragments beforehand.
template <class F> bool product_is_right(F change) {
  const Matrices m = integers();
  bool right = true;
  CHECK(fault_of<Block>(64, 0, [&](Prim prim) {
          const int g = prim.rank() % 32 / 4, t = prim.rank() % 4;
          std::uint32_t a[4], b[2];
          for (int i = 0; i < 4; ++i) {
            const int row = g + i % 2 * 8, k = 2 * t + i / 2 * 8;
            a[i] = bf16_pair(float(m.a[row][k]), float(m.a[row][k + 1]));
          }
          for (int i = 0; i < 2; ++i) b[i] = bf16_pair(float(m.b[2 * t + 8 * i][g]), float(m.b[2 * t + 8 * i + 1][g]));
          change(prim.rank(), a, b);
          float c[4];
          for (int i = 0; i < 4; ++i) c[i] = float(m.c[g + i / 2 * 8][2 * t + i % 2]);
          prim.mma(c, a, b);
          for (int i = 0; i < 4; ++i) {
            int needs = m.c[g + i / 2 * 8][2 * t + i % 2];
            for (int k = 0; k < 16; ++k) needs += m.a[g + i / 2 * 8][k] * m.b[k][2 * t + i % 2];
            right = right && c[i] == float(needs);
          }
        }) == "");
  return right;
}

}  // namespace

TEST_CASE("mma: a product of integers is exact, and another layout is not taken for it", "[emulated]") {
  using Words = std::uint32_t*;
  CHECK(product_is_right([](int, Words, Words) {}));
  CHECK(product_is_right([](int, Words a, Words b) {  // k in another order on both sides
    std::swap(a[0], a[2]), std::swap(a[1], a[3]), std::swap(b[0], b[1]);
  }));
  CHECK(!product_is_right([](int, Words a, Words) { std::swap(a[1], a[2]); }));
  CHECK(!product_is_right([](int, Words, Words b) { std::swap(b[0], b[1]); }));
  CHECK(!product_is_right([](int, Words a, Words) { a[0] = a[0] << 16 | a[0] >> 16; }));
  CHECK(!product_is_right([](int rank, Words a, Words) { if (rank == 37) std::swap(a[0], a[1]); }));
}

TEST_CASE("mma: a lane that is missing is found", "[emulated]") {
  CHECK(fault_of<Block>(64, 0, [](Prim prim) {
          float c[4] = {};
          const std::uint32_t a[4] = {}, b[2] = {};
          if (prim.rank() != 40) prim.mma(c, a, b);
        }) == "emulated block: divergent barrier: 0 threads wait at a barrier of the block, 31 in a shuffle, 33 have left");
}

namespace {

// Lanes that hold something else than the instruction says.
template <int fault> struct WrongLanes : Prim {
  void mma(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const {
    if constexpr (fault == 0) Prim::mma(c, {a[0], a[2], a[1], a[3]}, b);
    if constexpr (fault == 1) Prim::mma(c, a, {b[1], b[0]});
    if constexpr (fault == 2) {  // rows g and g + 8
      std::swap(c[0], c[2]);
      Prim::mma(c, a, b);
      std::swap(c[1], c[3]);
    }
    if constexpr (fault == 3) {  // columns 2 t and 2 t + 1
      Prim::mma(c, a, b);
      std::swap(c[0], c[1]);
    }
    if constexpr (fault == 4) Prim::mma(c, a, {rank() % 32 == 5 ? b[1] : b[0], b[1]});
    if constexpr (fault == 5) Prim::mma(c, a, b);
  }
};

// The kernels themselves, on 70 tokens of two heads that share a KV head.
struct Kernels {
  Problem<float> p = exact_problem({1, 70, 2, 1, 24}, 0, false);
  Problem<double> rounded = as_rounded(p);
  Values needs = on_cpu(rounded);
  std::vector<float> out = std::vector<float>(p.q.size()), lse = std::vector<float>(140), delta = lse;
  std::vector<float> dq = out, dk = std::vector<float>(p.k.size()), dv = dk;

  TensorAttention<2> in() const { return {{p.s, p.rope.cosines(), p.rope.sines(), p.q.data(), p.k.data(), p.v.data(), nullptr, 0}}; }
  TensorAttentionForward<2> forward() { return {in(), out.data(), lse.data()}; }
  TensorAttentionBackward<2> backward() {
    return {in(), out.data(), lse.data(), p.dout.data(), delta.data(), {dq.data(), false}, {dk.data(), false}, {dv.data(), false}};
  }
  // All items on prims that of(prim) makes; the fault of a block, if there is one.
  template <class Body, class F> std::string run(const Body& body, int items, F of) {
    std::string fault;
    for (int item = 0; item < items && fault.empty(); ++item)
      fault = fault_of<Block>(Body::threads, Body::shared_reals * sizeof(float), [&](Prim prim) { body(of(prim), item); });
    return fault;
  }
  template <class F> double share(F of) {
    CHECK(run(forward(), 4, of) == "");
    Values has = {{out.begin(), out.end()}, {lse.begin(), lse.end()}};
    std::copy(needs[0].begin(), needs[0].end(), out.begin());
    std::copy(needs[1].begin(), needs[1].end(), lse.begin());
    CHECK(run(TensorAttentionQueries<2>{backward()}, 2, of) == "");
    CHECK(run(TensorAttentionKeys<2>{backward()}, 2, of) == "");
    for (const auto* g : {&dq, &dk, &dv}) has.emplace_back(g->begin(), g->end());
    return worst_share(has, needs, bounds_of(rounded, needs, 0, false), false);
  }
};

}  // namespace

TEST_CASE("tensor attention: a wrong lane is not within the bound", "[emulated]") {
  Kernels kernels;
  CHECK(kernels.share([](Prim p) { return p; }) < 1);
  CHECK(kernels.share([](Prim p) { return WrongLanes<0>{p}; }) > 10);
  CHECK(kernels.share([](Prim p) { return WrongLanes<1>{p}; }) > 10);
  CHECK(kernels.share([](Prim p) { return WrongLanes<2>{p}; }) > 10);
  CHECK(kernels.share([](Prim p) { return WrongLanes<3>{p}; }) > 10);
  CHECK(kernels.share([](Prim p) { return WrongLanes<4>{p}; }) > 10);
  CHECK(kernels.share([](Prim p) { return WrongLanes<5>{p}; }) < 1);
}

TEST_CASE("tensor attention: every barrier is needed, and its absence found", "[emulated]") {
  Kernels kernels;
  // Leaves out one barrier after the other; how many there are.
  const auto needed = [&](const auto& body, int first_needed) {
    using Body = std::remove_cvref_t<decltype(body)>;
    int barriers = 0;
    for (int drop = -1; drop < barriers; ++drop) {
      std::vector<int> counts(std::size_t(Body::threads));
      const std::string fault = kernels.run(body, 1, [&](Prim p) {
        counts[std::size_t(p.rank())] = 0;
        return WithoutOneBarrier<Prim>(p, drop, counts);
      });
      if (drop < 0) barriers = counts[0];
      CAPTURE(drop, fault);
      CHECK((fault == "") == (drop < first_needed));
    }
    return barriers;
  };
  CHECK(needed(kernels.forward(), 0) == 1 + 2 * 2);  // the queries' tile, two of keys
  // Before its first head a block has nothing to wait for.
  CHECK(needed(TensorAttentionQueries<2>{kernels.backward()}, 1) == 2 * (2 + 2 * 2));
  CHECK(needed(TensorAttentionKeys<2>{kernels.backward()}, 0) == 1 + 2 * 2 * 2);
}

TEST_CASE("tensor attention: gradients that nobody wants are left alone", "[emulated]") {
  Kernels kernels;
  const auto of = [](Prim p) { return p; };
  CHECK(kernels.share(of) < 1);
  const auto dq = kernels.dq, dk = kernels.dk, dv = kernels.dv;
  auto body = kernels.backward();
  body.dq.g = nullptr, body.dk.g = nullptr;
  for (float& x : kernels.dv) x = 0;
  CHECK(kernels.run(TensorAttentionQueries<2>{body}, 2, of) == "");
  CHECK(kernels.run(TensorAttentionKeys<2>{body}, 2, of) == "");
  CHECK((kernels.dq == dq && kernels.dk == dk && kernels.dv == dv));
  body.dk.g = kernels.dk.data(), body.dv.g = nullptr;
  for (float& x : kernels.dk) x = 0;
  CHECK(kernels.run(TensorAttentionKeys<2>{body}, 2, of) == "");
  CHECK((kernels.dk == dk && kernels.dv == dv));
}
