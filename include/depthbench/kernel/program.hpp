// A row program: leaves, and a function body over their nodes. The leaves of `params` come first in the call, then
// those of `tokens`, in order. The same body, in Mode::Bwd, is the adjoint program.
//
//   struct RmsNorm {
//     using params = Leaves<Channels<1>>;
//     using tokens = Leaves<Rows<1>, OutRows<1>>;
//     double eps;
//     DB_FN void operator()(auto&, auto& g, auto& x, auto& y) const {
//       auto u = scaled(rsqrt(sum_squares(x) / x.dim() + eps), x, g);
//       y = u;
//     }
//   };
#pragma once
#include "depthbench/kernel/combine.hpp"
#include "depthbench/kernel/reduce.hpp"

namespace depthbench {

// N rows of a token, written.                                y, gy: (tokens, N, d)
template <int N> struct OutRows {
  static constexpr Role role = Role::Out;
  static constexpr std::size_t numel(int d) { return std::size_t(N) * d; }
  template <class S, class R> struct Desc {
    S* y;
    const S* gy;
  };
  template <class Team, Mode M, class S> struct Node {
    using Pack = typename Team::Pack;
    Team& team;
    const Desc<S, typename Team::real>& q;
    std::size_t at;
    DB_FN Node(Team& t, const Desc<S, typename Team::real>& q_, int token, int) : team(t), q(q_), at(std::size_t(token) * N * t.d) {}
    Node(Node&&) = delete;
    DB_FN std::size_t address(int j, int p) const { return at + std::size_t(j) * team.d + team.offset(p); }
    DB_FN Pack grad(int j, int p) const { return load_pack<Pack>(q.gy + address(j, p), team.d - team.offset(p)); }
    template <LinearExpr E> DB_FN void operator=(E&& e) {
      static_assert(Bare<E>::outs == N, "output rows: the expression has a different number of rows");
      if constexpr (M == Mode::Fwd) {
        DB_UNROLL_SIMT for (int p = 0; p < team.packs(); ++p) {
          Pack s[N];
          DB_UNROLL for (int j = 0; j < N; ++j) s[j] = Pack::splat(0);
          e.accumulate(s, p);
          DB_UNROLL for (int j = 0; j < N; ++j) store_pack(q.y + address(j, p), s[j], team.d - team.offset(p));
        }
      } else {
        reverse_linear(e, *this);
      }
    }
    template <RowsNode H> DB_FN void operator=(H& h) {
      static_assert(H::rows == N, "output rows: a different number of rows");
      DB_UNROLL for (int j = 0; j < N; ++j) DB_UNROLL_SIMT for (int p = 0; p < team.packs(); ++p) {
        const int left = team.d - team.offset(p);
        if constexpr (M == Mode::Fwd) store_pack(q.y + address(j, p), h.value(j, p), left);
        else h.set_grad(j, p, h.grad(j, p) + grad(j, p));
      }
      if constexpr (M == Mode::Bwd) h.touched();
    }
  };
};

// A small matrix of a token, written.                        y, gy: (tokens, NR, NC)
template <int NR, int NC = 1> struct OutToken {
  static constexpr Role role = Role::Out;
  static constexpr std::size_t numel(int) { return std::size_t(NR) * NC; }
  template <class S, class R> struct Desc {
    R* y;
    const R* gy;
  };
  template <class Team, Mode M, class S> struct Node {
    Team& team;
    const Desc<S, typename Team::real>& q;
    std::size_t at;
    DB_FN Node(Team& t, const Desc<S, typename Team::real>& q_, int token, int) : team(t), q(q_), at(std::size_t(token) * NR * NC) {}
    Node(Node&&) = delete;
    template <SmallNode A> DB_FN void operator=(A&& a) {
      static_assert(Bare<A>::rows == NR && Bare<A>::cols == NC, "output: another shape than the expression");
      DB_UNROLL for (int s = 0; s < Bare<A>::regs; ++s) {
        const int k = a.l.template elem<NR * NC>(s);
        if constexpr (M == Mode::Fwd) { if (team.lead_warp() && k < NR * NC) q.y[at + k] = a.v[s]; }
        else { if (k < NR * NC) a.g[s] += q.gy[at + k]; }
      }
    }
  };
};

// ---- binding a program to its leaves
template <class L> inline constexpr int accumulator_rows = 0;
template <int K> inline constexpr int accumulator_rows<Channels<K>> = K;
template <class... Ls> struct Leaves {
  static constexpr int accumulators = (0 + ... + accumulator_rows<Ls>);
  static constexpr int count = sizeof...(Ls);
  static constexpr int outs = (0 + ... + int(Ls::role == Role::Out));
  static constexpr int ins = (0 + ... + int(Ls::role == Role::In));
};

template <class S, class R, class... Ls> struct Descs {};
template <class S, class R, class L, class... Ls> struct Descs<S, R, L, Ls...> {
  typename L::template Desc<S, R> head;
  Descs<S, R, Ls...> tail;
};
// f(leaf, its description), leaf by leaf.
template <class S, class R, class F> void for_leaves(Descs<S, R>&, Leaves<>, F&) {}
template <class S, class R, class L, class... Ls, class F> void for_leaves(Descs<S, R, L, Ls...>& d, Leaves<L, Ls...>, F& f) {
  f(L{}, d.head);
  for_leaves(d.tail, Leaves<Ls...>{}, f);
}
template <class Team, Mode M, class S, class... Ls> struct Nodes {
  template <class D> DB_FN Nodes(Team&, const D&, int, int) {}
};
template <class Team, Mode M, class S, class L, class... Ls> struct Nodes<Team, M, S, L, Ls...> {
  typename L::template Node<Team, M, S> head;
  Nodes<Team, M, S, Ls...> tail;
  template <class D> DB_FN Nodes(Team& t, const D& d, int token, int team) : head(t, d.head, token, team), tail(t, d.tail, token, team) {}
};
template <class S, class R, class Ls> struct DescsOf;
template <class S, class R, class... Ls> struct DescsOf<S, R, Leaves<Ls...>> { using type = Descs<S, R, Ls...>; };
template <class Team, Mode M, class S, class Ls> struct NodesOf;
template <class Team, Mode M, class S, class... Ls> struct NodesOf<Team, M, S, Leaves<Ls...>> { using type = Nodes<Team, M, S, Ls...>; };

// Storage type S of rows, compute type R of small matrices.
template <class Program, class S, class R> struct ProgramArgs {
  typename DescsOf<S, R, typename Program::params>::type params;
  typename DescsOf<S, R, typename Program::tokens>::type tokens;
};

// program(team, parameter nodes..., token nodes...). No lambdas: a by-reference capture that is not inlined early
// enough forces every node into local memory on a GPU.
template <class Program, class Team, Mode M, class S, class... Done>
DB_FN void call_tokens(const Program& f, Team& t, Nodes<Team, M, S>&, Done&... done) { f(t, done...); }
template <class Program, class Team, Mode M, class S, class L, class... Ls, class... Done>
DB_FN void call_tokens(const Program& f, Team& t, Nodes<Team, M, S, L, Ls...>& n, Done&... done) {
  call_tokens(f, t, n.tail, done..., n.head);
}
template <class Program, class Team, Mode M, class S, class Tokens, class... Done>
DB_FN void call_program(const Program& f, Team& t, Nodes<Team, M, S>&, Tokens& tokens, Done&... done) {
  call_tokens(f, t, tokens, done...);
}
template <class Program, class Team, Mode M, class S, class L, class... Ls, class Tokens, class... Done>
DB_FN void call_program(const Program& f, Team& t, Nodes<Team, M, S, L, Ls...>& n, Tokens& tokens, Done&... done) {
  call_program(f, t, n.tail, tokens, done..., n.head);
}

// The kernel body of every row program, everywhere: team number `team` walks the tokens first, first + step, ... < last.
template <Mode M, class S, class Program, class Team, class Args>
DB_FN void run_program(const Program& program, Team& t, const Args& args, int first, int last, int step, int team) {
  typename NodesOf<Team, M, S, typename Program::params>::type params(t, args.params, 0, team);
  for (int token = first; token < last; token += step) {
    typename NodesOf<Team, M, S, typename Program::tokens>::type tokens(t, args.tokens, token, team);
    call_program(program, t, params, tokens);
  }
}

}  // namespace depthbench
