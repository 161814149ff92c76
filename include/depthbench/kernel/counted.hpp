// What a row program does, counted by running it on numbers that are not there.
//   program_flops<Mode::Fwd>(HyperAdvance<4>{...}, d)      FLOPs of one token of width d: {mixing, norm}
// A Counted has no value; it knows whose tally it belongs to, and +, -, *, / and every function of it count as one.
//   A sum of n products counts 2 n, as in matrix products: adding to a zero counts, multiplying by a plain 1 does not,
//   and plain numbers among themselves (eps, 1 / d) are no work.
// norm: sums of squares, means, and the scaling of rows by them; mixing: everything else.
// The count is linear in the width, so two runs, of two channels and of three, give it for every width.
#pragma once
#include <cmath>
#include <type_traits>
#include <vector>

#include "depthbench/kernel/program.hpp"

namespace depthbench {

struct ProgramFlops {
  double mixing = 0, norm = 0;
};

struct Counter {
  ProgramFlops flops;
  bool in_norm = false;
  void add() { ++(in_norm ? flops.norm : flops.mixing); }
};

struct Counted {
  Counter* counter;  // null: a plain number
  bool one;          // the plain number 1

  Counted() = default;
  template <class T> requires std::is_arithmetic_v<T> Counted(T x) : counter(nullptr), one(x == T(1)) {}
  explicit Counted(Counter& c) : counter(&c), one(false) {}

  static Counted of(Counted a) {
    if (a.counter) a.counter->add();
    a.one = false;
    return a;
  }
  friend Counted operator+(Counted a, Counted b) { return of(a.counter ? a : b); }
  friend Counted operator-(Counted a, Counted b) { return of(a.counter ? a : b); }
  friend Counted operator*(Counted a, Counted b) { return a.one ? b : b.one ? a : of(a.counter ? a : b); }
  friend Counted operator/(Counted a, Counted b) { return b.one ? a : of(a.counter ? a : b); }
  friend bool operator>(Counted a, Counted b) {
    of(a.counter ? a : b);
    return false;
  }
  Counted operator+() const { return *this; }
  Counted operator-() const { return *this; }
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  Counted& operator*=(Counted b) { return *this = *this * b; }
  Counted& operator/=(Counted b) { return *this = *this / b; }
  friend Counted exp(Counted x) { return of(x); }
  friend Counted log(Counted x) { return of(x); }
  friend Counted sqrt(Counted x) { return of(x); }
  friend Counted tanh(Counted x) { return of(x); }
};

// A team of one worker, with a channel a pack. See team.hpp for what the members mean.
struct CountingTeam {
  using real = Counted;
  using Pack = Lane<Counted, 1>;
  using Acc = Counted;
  struct Lanes : Replicated<Counted> {
    static constexpr int lanes = 0;  // no registers to fill: functions go number by number
  };
  struct Store {
    Pack* p;
    Pack& operator[](int i) { return p[i]; }
    const Pack& operator[](int i) const { return p[i]; }
  };
  using AccStore = Store;
  static constexpr bool simt = false;

  int d;
  Counter* counter;
  std::vector<Pack> arena = std::vector<Pack>(512);  // more rows of three channels than any program holds
  std::size_t top = 0;

  int packs() const { return d; }
  int offset(int i) const { return i; }
  void alloc(Store& s) {
    s.p = &arena.at(top + std::size_t(d)) - d;
    top += std::size_t(d);
  }
  void release(Store& s) { top = std::size_t(s.p - arena.data()); }
  void alloc_acc(Store& s) { alloc(s); }
  static Acc acc0() { return 0; }
  static void fma(Acc& a, Pack p, Pack q) { a += p.x[0] * q.x[0]; }
  static Counted hsum(Acc a) { return a; }
  template <int K> static void hsums(const Acc (&a)[K], Counted (&out)[K]) { for (int k = 0; k < K; ++k) out[k] = a[k]; }
  template <int K> void sum(const Counted (&part)[K], Counted (&out)[K]) { for (int k = 0; k < K; ++k) out[k] = part[k]; }
  static Counted hmax(Pack a) { return a.x[0]; }
  Counted max(Counted x) const { return x; }
  Lanes lanes() const { return {}; }
  int begin() const { return 0; }
  int step() const { return 1; }
  bool lead_warp() const { return true; }
  bool leader() const { return true; }

  struct Norm {
    Counter* counter;
    bool was;
    explicit Norm(Counter* c) : counter(c), was(c->in_norm) { c->in_norm = true; }
    ~Norm() { counter->in_norm = was; }
    Norm(const Norm&) = delete;
    Norm& operator=(const Norm&) = delete;
  };
  Norm norm_scope() { return Norm(counter); }
};

namespace detail {
template <Mode M, class Program> ProgramFlops count_program(const Program& program, int d) {
  Counter counter;
  std::vector<std::vector<Counted>> arrays;  // each leaf's values and gradients
  const auto data = [&](std::size_t n) { return arrays.emplace_back(n, Counted(counter)).data(); };
  ProgramArgs<Program, Counted, Counted> args{};
  auto bind = [&]<class L>(L, auto& desc) {
    Counted *x = data(L::numel(d)), *g = data(L::numel(d));
    if constexpr (L::role == Role::In) {
      desc = {x, g, false};
      if constexpr (requires { desc.tokens; }) desc.tokens = 1;
    } else {
      desc = {x, g};
    }
  };
  for_leaves(args.params, typename Program::params{}, bind);
  for_leaves(args.tokens, typename Program::tokens{}, bind);
  CountingTeam team{d, &counter};
  run_program<M, Counted>(program, team, args, 0, 1, 1, 0);
  return counter.flops;
}
}  // namespace detail

// FLOPs of one token. Mode::Bwd: of the adjoint program, which forms its forward values again.
template <Mode M, class Program> ProgramFlops program_flops(const Program& program, int d) {
  const ProgramFlops two = detail::count_program<M>(program, 2), three = detail::count_program<M>(program, 3);
  const auto at = [&](double a, double b) { return a + (d - 2) * (b - a); };
  return {at(two.mixing, three.mixing), at(two.norm, three.norm)};
}

}  // namespace depthbench
