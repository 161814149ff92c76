// Manifold-constrained Hyper-Connections (mHC): n streams mixed by a doubly stochastic matrix.   Xie et al. 2025, arXiv 2512.24880
//
//   m = vec(X) phi / rms(vec(X));   H_pre = sigmoid(a_pre m + b),  H_post = 2 sigmoid(a_post m + b),  H_res = Sinkhorn(a_res m + b)
//   u = N_k( sum_i H_pre[i] x_i )
//   x'_o = sum_i H_res[o][i] x_i + H_post[o] S_k(u)
//
//   x (N, n, d) streams, all equal to the embedding at first; read-out: their mean.   H_res[o][i] is the weight into stream o
//   from stream i; rows are destinations.   phi (n d, n^2 + 2 n), b (n^2 + 2 n): n pre, n post, n n res.
//   at initialisation this is   Pre-LN nearly (2e-5 in logits): phi = 0, H_pre picks stream k mod n up to sigmoid(-8),
//   H_post = 1, H_res is the identity up to 1e-3.
//   reduces to   X' = x + 2 sigmoid(b) S(u) when n = 1: H_res is 1.
//   cost per token and sublayer   parameters n d (n^2 + 2 n) + n^2 + 2 n + 3 + d; FLOPs 2 n d (n^2 + 2 n) and about
//   2 n (n + 3) d forward; elements moved forward (4 n + 2) d, saved (n + 1) d + 2 (n^2 + 2 n).
//   source: DepthBench block `mhc` (Liger).   Departs from the paper: W_out and W2 start at 1 / sqrt(n); biases +-8 ("gap-8").
//   dead: H_res of sublayer 0 (all streams are equal) and of the last sublayer (the mean ignores it), up to eps; the scale
//   of H_pre of sublayer 0 (the norm removes it).
#pragma once
#include <cmath>

#include "depthbench/op/mhc.hpp"
#include "depthbench/op/streams.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class Mhc final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit Mhc(const DesignOptions& options = {})
      : n_(options.integer("n_streams", 4, 1, 8)), iterations_(options.integer("sinkhorn_iters", 20, 1, 64)) {
    options.expect_only("mhc", {"n_streams", "sinkhorn_iters"});
  }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    norm_eps_ = shape.norm_eps;
    gain_ = declare_branch_norms(p, shape);
    const int count = n_ * n_ + 2 * n_;
    for (int k = 0; k < shape.sublayers; ++k) {
      const std::string at = sublayer_name(k) + "_hyper_connection.";
      std::vector<double> b(std::size_t(count), -8.0);                     // gap-8: pre and res off, ...
      b[std::size_t(k % n_)] = 8;                                          // ... but one stream is read,
      for (int s = 0; s < n_; ++s) b[std::size_t(n_ + s)] = b[std::size_t(2 * n_ + s * n_ + s)] = 0;  // all are written, each to itself
      const auto add = [&](const char* name, Shape extents, Init init, Decay decay) {
        auto& q = p.declare(at + name, extents, std::move(init), decay, Part::residual);
        q.keep_fp32 = decay == Decay::no;                                  // b and the alphas
        return &q;
      };
      connection_.push_back({add("phi", {n_ * shape.d, count}, Init::constant(0), Decay::yes), add("b", {count}, Init::of_table(b), Decay::no),
                             add("alpha_pre", {}, Init::constant(0.01), Decay::no), add("alpha_post", {}, Init::constant(0.01), Decay::no),
                             add("alpha_res", {}, Init::constant(0.01), Decay::no)});
    }
  }

  // carry: x (N, n d), its squares (N, 1), and between read and write c (n^2 + 2 n, N)
  State open(Variable x) override {
    const Variable streams = repeat_streams(x, n_);
    return {{streams, stream_squares(streams)}, nullptr};
  }
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0], squares = carry.values[1];
    const auto use = [&](int i) { return x.tape->use(*connection_[k][i]); };
    const Variable c = mhc_coefficients({use(0), use(1), use(2), use(3), use(4)}, x, squares, {n_, iterations_});
    carry.values = {x, squares, c};
    return mhc_read(x, c, x.tape->use(*gain_[k]), n_, norm_eps_);          // (N, d)
  }
  void write(State& carry, Variable y, int) override {
    const auto [next, squares] = mhc_write(carry.values[0], carry.values[2], y, n_);
    carry.values = {next, squares};
  }
  Variable close(State& carry) override { return sum_streams(carry.values[0], n_, R(1) / R(n_)); }
  Variable state(State& carry, int) override { return carry.values[0]; }

  double init_scale(Weight w) const override { return w == Weight::out || w == Weight::w2 ? 1 / std::sqrt(double(n_)) : 1; }

  bool replace(State& carry, Variable z) override {
    carry.values = {z, stream_squares(z)};
    return true;
  }
  std::optional<Join> join(State& carry, int k) override {
    const std::size_t tokens = std::size_t(carry.values[0].rows()), n = std::size_t(n_);
    Join j{n_, std::vector<double>(tokens * n, 1.0 / n_), {}, {}, {}};
    if (k == int(connection_.size())) return j;                            // the read-out: their mean
    const auto c = carry.values[2].tape->host(carry.values[2]);            // (n^2 + 2 n, N)
    j.map.resize(tokens * n * n);
    j.write.resize(tokens * n);
    for (std::size_t t = 0; t < tokens; ++t) for (std::size_t o = 0; o < n; ++o) {
      j.read[t * n + o] = c[o * tokens + t];
      j.write[t * n + o] = c[(n + o) * tokens + t];
      for (std::size_t i = 0; i < n; ++i) j.map[(t * n + o) * n + i] = c[(2 * n + o * n + i) * tokens + t];
    }
    return j;
  }

 private:
  int n_, iterations_;
  double norm_eps_ = 0;
  std::vector<Parameter<R>*> gain_;                        // one a sublayer, (d)
  std::vector<std::array<Parameter<R>*, 5>> connection_;   // phi, b, alpha_pre, alpha_post, alpha_res
};

}  // namespace depthbench
