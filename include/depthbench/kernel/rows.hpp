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

// What nodes use of rows: value(i, p), and in Mode::Bwd grad(i, p), set_grad(i, p, sum), and touched() after a pass that
// has set them all: the first contribution overwrites, so adjoints need no pass that makes them zero.
template <class Team_, int N, Mode M> struct RowsBase : RowsTag {
  using Team = Team_;
  using R = typename Team::real;
  using Pack = typename Team::Pack;
  static constexpr int rows = N;
  static constexpr Mode mode = M;
  Team& team;
  bool fresh = true;  // no adjoint yet. A constant wherever it is asked for, once everything is inlined
  DB_FN explicit RowsBase(Team& t) : team(t) {}
  RowsBase(RowsBase&&) = delete;
  DB_FN R dim() const { return R(team.d); }
  DB_FN int left(int p) const { return team.d - team.offset(p); }
  DB_FN void touched() { fresh = false; }
};

// Rows that a program makes: in registers, or in the arena.
template <class Team, int N, Mode M> struct OwnRows : RowsBase<Team, N, M> {
  using Pack = typename Team::Pack;
  static constexpr int adjoints = M == Mode::Bwd ? N : 1;
  typename Team::Store v[N], g[adjoints];
  DB_FN explicit OwnRows(Team& t) : RowsBase<Team, N, M>(t) {
    DB_UNROLL for (int i = 0; i < N; ++i) t.alloc(v[i]);
    if constexpr (M == Mode::Bwd) DB_UNROLL for (int i = 0; i < N; ++i) t.alloc(g[i]);
  }
  DB_FN ~OwnRows() { this->team.release(v[0]); }
  DB_FN Pack value(int i, int p) const { return v[i][p]; }
  DB_FN Pack grad(int i, int p) const { return this->fresh ? Pack::splat(0) : Pack(g[i][p]); }
  DB_FN void set_grad(int i, int p, Pack x) { g[i][p] = x; }
};

enum class Role { In, Param, Out };

// N rows of a token, read.                                   x, gx: (tokens, N, d)
// A CPU thread reads and writes them where they are: they are in its cache after the first touch. A GPU thread, and any
// storage type other than the compute type, keeps them in registers or the arena.
template <int N> struct Rows {
  static constexpr Role role = Role::In;
  static constexpr std::size_t numel(int d) { return std::size_t(N) * d; }
  template <class S, class R> struct Desc {
    const S* x;
    S* gx;     // null: no gradient wanted
    bool add;  // gx already holds a gradient
  };
  template <class Team, Mode M, class S> struct InPlace : RowsBase<Team, N, M> {
    using Pack = typename Team::Pack;
    using D = Desc<S, typename Team::real>;
    const S* x;
    S* gx;
    bool wanted;
    DB_FN InPlace(Team& t, const D& q, int token, int) : RowsBase<Team, N, M>(t), x(q.x + std::size_t(token) * N * t.d), wanted(q.gx) {
      if constexpr (M == Mode::Bwd) {
        gx = wanted ? q.gx + std::size_t(token) * N * t.d : nullptr;
        this->fresh = !q.add;
      }
    }
    DB_FN ~InPlace() {  // no node sent a gradient: it is zero
      if constexpr (M == Mode::Bwd) if (this->fresh && wanted)
        DB_UNROLL for (int i = 0; i < N; ++i) for (int p = 0; p < this->team.packs(); ++p) set_grad(i, p, Pack::splat(0));
    }
    DB_FN Pack value(int i, int p) const { return load_pack<Pack>(x + std::size_t(i) * this->team.d + this->team.offset(p), this->left(p)); }
    DB_FN Pack grad(int i, int p) const {
      return this->fresh || !wanted ? Pack::splat(0) : load_pack<Pack>(gx + std::size_t(i) * this->team.d + this->team.offset(p), this->left(p));
    }
    DB_FN void set_grad(int i, int p, Pack g) {
      if (wanted) store_pack(gx + std::size_t(i) * this->team.d + this->team.offset(p), g, this->left(p));
    }
  };
  template <class Team, Mode M, class S> struct Copied : OwnRows<Team, N, M> {
    using Pack = typename Team::Pack;
    using D = Desc<S, typename Team::real>;
    const D& q;
    std::size_t at;
    DB_FN Copied(Team& t, const D& q_, int token, int) : OwnRows<Team, N, M>(t), q(q_), at(std::size_t(token) * N * t.d) {
      DB_UNROLL for (int i = 0; i < N; ++i) DB_UNROLL_SIMT for (int p = 0; p < t.packs(); ++p)
        this->v[i][p] = load_pack<Pack>(q.x + at + std::size_t(i) * t.d + t.offset(p), this->left(p));
    }
    DB_FN ~Copied() {
      if constexpr (M == Mode::Bwd) if (q.gx) {
        auto& t = this->team;
        DB_UNROLL for (int i = 0; i < N; ++i) DB_UNROLL_SIMT for (int p = 0; p < t.packs(); ++p) {
          S* dst = q.gx + at + std::size_t(i) * t.d + t.offset(p);
          Pack r = this->grad(i, p);
          if (q.add) r = r + load_pack<Pack>(dst, this->left(p));  // added last: adding first would hold registers
          store_pack(dst, r, this->left(p));
        }
      }
    }
  };
  template <class Team, Mode M, class S>
  using Node = std::conditional_t<!Team::simt && std::is_same_v<S, typename Team::real>, InPlace<Team, M, S>, Copied<Team, M, S>>;
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
    std::size_t first;
    bool lead;
    DB_FN Node(Team& t, const Desc<S, R>& q_, int token, int)
        : Node::Small(t.lanes()), q(q_), first(std::size_t(token) * NR * NC), lead(t.lead_warp()) {
      DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        this->v[s] = k < NR * NC ? q.x[first + k] : R(0);
      }
    }
    Node(Node&&) = delete;
    DB_FN ~Node() {
      if constexpr (M == Mode::Bwd) if (lead && q.gx) DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        if (k < NR * NC) q.gx[first + k] = (q.add ? q.gx[first + k] : R(0)) + this->g[s];
      }
    }
  };
};

// The same with the tokens last: the layout of programs that compute a pack of tokens at a time.   x, gx: (NR, NC, tokens)
template <int NR, int NC = 1> struct TokenColumn {
  static constexpr Role role = Role::In;
  static constexpr std::size_t numel(int) { return std::size_t(NR) * NC; }
  template <class S, class R> struct Desc {
    const R* x;
    R* gx;
    bool add;
    std::int64_t tokens = 0;
  };
  template <class Team, Mode M, class S> struct Node : Small<typename Team::Lanes, NR, NC, M> {
    using R = typename Team::real;
    const Desc<S, R>& q;
    int token;
    bool lead;
    DB_FN Node(Team& t, const Desc<S, R>& q_, int token_, int) : Node::Small(t.lanes()), q(q_), token(token_), lead(t.lead_warp()) {
      DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        this->v[s] = k < NR * NC ? q.x[k * q.tokens + token] : R(0);
      }
    }
    Node(Node&&) = delete;
    DB_FN ~Node() {
      if constexpr (M == Mode::Bwd) if (lead && q.gx) DB_UNROLL for (int s = 0; s < Node::regs; ++s) {
        const int k = this->l.template elem<NR * NC>(s);
        const std::int64_t at = k * q.tokens + token;
        if (k < NR * NC) q.gx[at] = (q.add ? q.gx[at] : R(0)) + this->g[s];
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
