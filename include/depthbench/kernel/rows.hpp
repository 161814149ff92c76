// ROWS: a token's rows of d channels, each member of the team holding its share, and the leaves of a program.
//
// A leaf has a Desc (plain pointers, what a launch passes) and a Node (built from a Desc when a token's scope opens).
// Token leaves live for one token. Parameter leaves live for the whole launch: their adjoint sums over the team's
// tokens and their destructor writes one partial per team; the partials are folded later, in fixed order.
#pragma once
#include <cstddef>

#include "depthbench/kernel/small.hpp"
#include "depthbench/kernel/team.hpp"

namespace depthbench {

struct RowsTag {};
template <class T> concept RowsNode = std::is_base_of_v<RowsTag, std::remove_cvref_t<T>>;

template <class Team_, int N, Mode M> struct RowsBase : RowsTag {
  using Team = Team_;
  using R = typename Team::real;
  using Pack = typename Team::Pack;
  static constexpr int rows = N;
  static constexpr Mode mode = M;
  static constexpr int adjoints = M == Mode::Bwd ? N : 1;
  Team& team;
  typename Team::Store v[N], g[adjoints];
  DB_FN explicit RowsBase(Team& t) : team(t) {
    DB_UNROLL for (int i = 0; i < N; ++i) team.alloc(v[i]);
    if constexpr (M == Mode::Bwd) DB_UNROLL for (int i = 0; i < N; ++i) {
      team.alloc(g[i]);
      DB_UNROLL_SIMT for (int p = 0; p < team.packs(); ++p) g[i][p] = Pack::splat(R(0));
    }
  }
  RowsBase(RowsBase&&) = delete;
  DB_FN ~RowsBase() { team.release(v[0]); }
  DB_FN R dim() const { return R(team.d); }
  DB_FN int left(int p) const { return team.d - team.offset(p); }
};

enum class Role { In, Param, Out };

// N rows of a token, read.                                   x, gx: (tokens, N, d)
template <int N> struct Rows {
  static constexpr Role role = Role::In;
  static constexpr std::size_t numel(int d) { return std::size_t(N) * d; }
  template <class S, class R> struct Desc {
    const S* x;
    S* gx;     // null: no gradient wanted
    bool add;  // gx already holds a gradient
  };
  template <class Team, Mode M, class S> struct Node : RowsBase<Team, N, M> {
    using Pack = typename Team::Pack;
    const Desc<S, typename Team::real>& q;
    std::size_t at;
    DB_FN Node(Team& t, const Desc<S, typename Team::real>& q_, int token, int)
        : RowsBase<Team, N, M>(t), q(q_), at(std::size_t(token) * N * t.d) {
      DB_UNROLL for (int i = 0; i < N; ++i) DB_UNROLL_SIMT for (int p = 0; p < t.packs(); ++p)
        this->v[i][p] = load_pack<Pack>(q.x + at + std::size_t(i) * t.d + t.offset(p), this->left(p));
    }
    DB_FN ~Node() {
      if constexpr (M == Mode::Bwd) if (q.gx) {
        auto& t = this->team;
        DB_UNROLL for (int i = 0; i < N; ++i) DB_UNROLL_SIMT for (int p = 0; p < t.packs(); ++p) {
          S* dst = q.gx + at + std::size_t(i) * t.d + t.offset(p);
          Pack r = this->g[i][p];
          if (q.add) r = r + load_pack<Pack>(dst, this->left(p));  // added last: adding first would hold registers
          store_pack(dst, r, this->left(p));
        }
      }
    }
  };
};

// A small matrix of a token, read.                           x, gx: (tokens, NR, NC)
template <int NR, int NC = 1> struct Token {
  static constexpr Role role = Role::In;
  static constexpr std::size_t numel(int) { return std::size_t(NR) * NC; }
  template <class S, class R> struct Desc {
    const R* x;
    R* gx;
    bool add;
  };
  template <class Team, Mode M, class S> struct Node : Small<typename Team::Lanes, NR, NC, M> {
    using R = typename Team::real;
    const Desc<S, R>& q;
    std::size_t at;
    bool lead;
    DB_FN Node(Team& t, const Desc<S, R>& q_, int token, int)
        : Node::Small(t.lanes()), q(q_), at(std::size_t(token) * NR * NC), lead(t.lead_warp()) {
      DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        this->v[s] = k < NR * NC ? q.x[at + k] : R(0);
      }
    }
    Node(Node&&) = delete;
    DB_FN ~Node() {
      if constexpr (M == Mode::Bwd) if (lead && q.gx) DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        if (k < NR * NC) q.gx[at + k] = (q.add ? q.gx[at + k] : R(0)) + this->g[s];
      }
    }
  };
};

// A small matrix of parameters.                              x: (NR, NC)   part: (teams, NR, NC)
template <int NR, int NC = 1> struct Param {
  static constexpr Role role = Role::Param;
  static constexpr std::size_t numel(int) { return std::size_t(NR) * NC; }
  template <class S, class R> struct Desc {
    const R* x;
    R* part;
  };
  template <class Team, Mode M, class S> struct Node : Small<typename Team::Lanes, NR, NC, M> {
    using R = typename Team::real;
    const Desc<S, R>& q;
    int team;
    bool lead;
    DB_FN Node(Team& t, const Desc<S, R>& q_, int, int team_)
        : Node::Small(t.lanes()), q(q_), team(team_), lead(t.lead_warp()) {
      DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        this->v[s] = k < NR * NC ? q.x[k] : R(0);
      }
    }
    Node(Node&&) = delete;
    DB_FN ~Node() {
      if constexpr (M == Mode::Bwd) if (lead && q.part) DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        if (k < NR * NC) q.part[std::size_t(team) * NR * NC + k] = this->g[s];
      }
    }
  };
};

// K parameter vectors over the channels, shared by all rows.   w: (K, d)   part: (teams, K, d)
template <int K> struct Channels {
  static constexpr Role role = Role::Param;
  static constexpr std::size_t numel(int d) { return std::size_t(K) * d; }
  template <class S, class R> struct Desc {
    const R* w;
    R* part;
  };
  template <class Team, Mode M, class S> struct Node {
    using R = typename Team::real;
    using Pack = typename Team::Pack;
    static constexpr int count = K;
    static constexpr int adjoints = M == Mode::Bwd ? K : 1;
    Team& t;
    const Desc<S, R>& q;
    int team;
    typename Team::AccStore g[adjoints];
    DB_FN Node(Team& t_, const Desc<S, R>& q_, int, int team_) : t(t_), q(q_), team(team_) {
      if constexpr (M == Mode::Bwd) DB_UNROLL for (int k = 0; k < K; ++k) {
        t.alloc_acc(g[k]);
        DB_UNROLL_SIMT for (int p = 0; p < t.packs(); ++p) g[k][p] = Pack::splat(R(0));
      }
    }
    Node(Node&&) = delete;
    DB_FN Pack at(int k, int p) const { return load_pack<Pack>(q.w + std::size_t(k) * t.d + t.offset(p), t.d - t.offset(p)); }
    DB_FN ~Node() {
      if constexpr (M == Mode::Bwd) if (q.part)
        DB_UNROLL for (int k = 0; k < K; ++k) DB_UNROLL_SIMT for (int p = 0; p < t.packs(); ++p)
          store_pack(q.part + (std::size_t(team) * K + k) * t.d + t.offset(p), g[k][p], t.d - t.offset(p));
    }
  };
};

}  // namespace depthbench
