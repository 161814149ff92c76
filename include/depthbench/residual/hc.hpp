// Hyper-Connections (HC): n streams, mixed by coefficients that depend on the token.   Zhu et al. 2024, arXiv 2409.19606, eq. 10-14
//
//   c = S + s * tanh(x_s / rms(x_s) . w)        coefficients (n, n + 2): read column, n map columns, write column
//   u = N_k( sum_s c[s][0] x_s )                 branch input
//   x'_t = sum_s c[s][t+1] x_s + c[t][n+1] S_k(u)
//
//   x (N, n, d) streams, all equal to the embedding at first; read-out: their sum.   H_res[o][i] = c[i][o+1] is the
//   weight into stream o from stream i; rows of H_res are destinations (static_alpha, as in files, has sources as rows).
//   at initialisation this is   Pre-LN with the final eps divided by n^2: the dynamic parts are zero, the map is the
//   identity, every write weight is 1, so all streams stay equal.
//   reduces to   Pre-LN with learned scales when n = 1.
//   cost per token and sublayer   parameters (n + 2) d + n (n + 2) + 2; FLOPs about 2 n (2 n + 5) d forward; elements
//   moved forward (2 n + 2) d, saved (n + 1) d + n (n + 2).
//   source: DepthBench block `hc`.   Departs from the paper: tanh on both; W_out and W2 start at 1 / sqrt(n); sum
//   read-out before the last norm.
//   dead at initialisation: dynamic projections of a connection whose streams are equal and whose read column is
//   one-hot still receive gradient; the scales do not (they multiply tanh(0) = 0).
#pragma once
#include <cmath>

#include "depthbench/op/hyper_connection.hpp"
#include "depthbench/op/streams.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class Hc final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit Hc(const DesignOptions& options = {}) : n_(options.integer("n_streams", 4, 1, 8)) {
    options.expect_only("hc", {"n_streams"});
  }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    norm_eps_ = shape.norm_eps;
    gain_ = declare_branch_norms(p, shape);
    for (int k = 0; k < shape.sublayers; ++k) {
      const std::string at = sublayer_name(k) + "_hyper_connection.";
      std::vector<double> alpha(std::size_t(n_) * (n_ + 1));               // column 0: one-hot at stream k mod n; then I
      for (int s = 0; s < n_; ++s) {
        alpha[std::size_t(s) * (n_ + 1)] = s == k % n_;
        alpha[std::size_t(s) * (n_ + 1) + 1 + s] = 1;
      }
      const auto add = [&](const char* name, Shape extents, Init init, Decay decay = Decay::yes) {
        return &p.declare(at + name, extents, std::move(init), decay, Part::residual);
      };
      connection_.push_back({add("static_alpha", {n_, n_ + 1}, Init::of_table(alpha), Decay::no),
                             add("dynamic_alpha_proj", {shape.d, n_ + 1}, Init::constant(0)),
                             add("dynamic_alpha_scale", {}, Init::constant(0.01)),
                             add("static_beta", {n_}, Init::constant(1), Decay::no),
                             add("dynamic_beta_proj", {shape.d}, Init::constant(0)),
                             add("dynamic_beta_scale", {}, Init::constant(0.01))});
    }
  }

  // carry: x (N, n d), and between read and write c (N, n (n + 2))
  State open(Variable x) override { return {{repeat_streams(x, n_)}, nullptr}; }
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0];
    const auto [u, c] = hyper_read(tables(x, k), x.tape->use(*gain_[k]), x, stream_eps, norm_eps_);
    carry.values = {x, c};
    return u;                                                              // (N, d)
  }
  void write(State& carry, Variable y, int) override { carry.values = {hyper_write(carry.values[0], carry.values[1], y)}; }
  Variable close(State& carry) override { return sum_streams(carry.values[0], n_, R(1)); }
  Variable state(State& carry, int) override { return carry.values[0]; }

  Variable advance(State& carry, Variable y, int k) override {
    const Variable x = carry.values[0];
    const auto [next, u, c] = hyper_advance(tables(x, k + 1), x.tape->use(*gain_[k + 1]), x, carry.values[1], y, stream_eps, norm_eps_);
    carry.values = {next, c};
    return u;
  }

  double init_scale(Weight w) const override { return w == Weight::out || w == Weight::w2 ? 1 / std::sqrt(double(n_)) : 1; }

  bool replace(State& carry, Variable z) override {
    carry.values = {z};
    return true;
  }
  std::optional<Join> join(State& carry, int k) override {
    const std::size_t tokens = std::size_t(carry.values[0].rows()), n = std::size_t(n_), w = n + 2;
    Join j{n_, std::vector<double>(tokens * n, 1.0), {}, {}, {}};
    if (k == int(connection_.size())) return j;                            // the read-out: their sum
    const auto c = carry.values[1].tape->host(carry.values[1]);            // (N, n, n + 2)
    j.map.resize(tokens * n * n);
    j.write.resize(tokens * n);
    for (std::size_t t = 0; t < tokens; ++t) for (std::size_t s = 0; s < n; ++s) {
      const R* row = &c[(t * n + s) * w];
      j.read[t * n + s] = row[0];
      j.write[t * n + s] = row[n + 1];
      for (std::size_t o = 0; o < n; ++o) j.map[(t * n + o) * n + s] = row[o + 1];
    }
    return j;
  }

 private:
  static constexpr double stream_eps = 1e-8;  // of the streams' own norm; OLMo-core hyper_connections.py

  HyperTables<Device, R> tables(Variable near, int k) const {
    const auto use = [&](int i) { return near.tape->use(*connection_[k][i]); };
    return hyper_tables(use(0), use(1), use(2), use(3), use(4), use(5));
  }

  int n_;
  double norm_eps_ = 0;
  std::vector<Parameter<R>*> gain_;                        // one a sublayer, (d)
  std::vector<std::array<Parameter<R>*, 6>> connection_;   // in the order of hyper_tables
};

}  // namespace depthbench
