// A design between branches that are plain matrices, y_k = W_k u_k: everything else that happens is the design's. Runs it
// verb by verb, gives its gradients, and has the plain loops of one token to compare with.
//   testing::Chain<Cpu, double> c(std::make_unique<PreLn<Cpu, double>>(), 7, 5, 6);    // 7 tokens, width 5, 6 sublayers
#pragma once
#include "depthbench/residual/design.hpp"
#include "depthbench/testing/bench.hpp"

namespace depthbench::testing {

enum class Verbs { write_then_read, advance };
enum class Keep { everything, recomputed };

template <class Device, class R> struct Chain {
  using V = Var<Device, R>;
  using Design = Residual<Device, R>;

  int n, d, sublayers;
  double norm_eps;
  Bench<Device, R> b;
  std::unique_ptr<Design> design;
  std::vector<std::vector<R>> states, inputs, branches;  // of the last run: z_0 .. z_L, u_k and y_k

  Chain(std::unique_ptr<Design> design_, int n_, int d_, int sublayers_, double norm_eps_ = 1e-6, int threads = 2)
      : n(n_), d(d_), sublayers(sublayers_), norm_eps(norm_eps_), b(threads), design(std::move(design_)) {
    const ResidualShape shape{d, sublayers, norm_eps, 0};
    design->configure(shape);
    b.parameters.declare("x", {n, d}, Init::truncated_normal(1));
    for (int k = 0; k < sublayers; ++k)
      b.parameters.declare(fmt::format("W{}", k), {d, d}, Init::truncated_normal(1.5 / std::sqrt(double(d))));
    design->declare(b.parameters, shape);
    b.parameters.allocate(6);
  }
  // Every parameter of the design at a random value: gains near 1, the rest normal.
  void randomize(double scale = 0.5) {
    std::uint64_t seed = 100;
    for (auto& p : b.parameters.list()) {
      if (p.part != Part::norm && p.part != Part::residual) continue;
      const bool gain = p.name.ends_with("norm.weight");
      const auto z = random_numbers(std::size_t(p.numel()), ++seed);
      for (std::size_t i = 0; i < z.size(); ++i) p.value[i] = R(gain ? 1 + 0.2 * z[i] : scale * z[i]);
    }
  }
  const R* x() { return b.at(0).value; }
  const R* at(const std::string& name) { return b.parameters[name].value; }
  const R* branch(int k) { return b.at(1 + k).value; }
  R* find(const std::string& name) { return b.parameters[name].value; }

  V run(Verbs verbs = Verbs::advance, Keep keep = Keep::everything) {
    states.clear();
    inputs.clear();
    branches.clear();
    auto carry = design->open(b.var(0));
    V u = design->read(carry, 0);
    const auto observe = [&](int block) {
      b.tape.no_grad([&] {
        states.push_back(copy_of(design->state(carry, block)));
        return std::vector<V>{};
      });
    };
    const auto block = [this, verbs](Carry<Device, R>& c, V v, int first) {
      for (int k = first; k < first + 2; ++k) {
        inputs.push_back(copy_of(v));
        const V y = linear(v, b.var(1 + k));
        branches.push_back(copy_of(y));
        if (k + 1 < sublayers && verbs == Verbs::advance) {
          v = design->advance(c, y, k);
        } else {
          design->write(c, y, k);
          if (k + 1 < sublayers) v = design->read(c, k + 1);
        }
      }
      return v;
    };
    for (int k = 0; k < sublayers; k += 2) {
      observe(k / 2);
      if (keep == Keep::everything) {
        u = block(carry, u, k);
        continue;
      }
      auto values = b.tape.recompute([=, this] {
        auto inner = carry;
        const V next = block(inner, u, k);
        inner.values.push_back(next);
        return inner.values;
      });
      u = values.back();
      values.pop_back();
      carry.values = values;
    }
    observe(sublayers / 2);
    return design->close(carry);
  }
  std::vector<std::vector<R>> gradients(Verbs verbs, Keep keep) {
    b.parameters.clear_grads();
    b.tape.backward(probe(run(verbs, keep)));
    b.parameters.settle_grads();
    std::vector<std::vector<R>> g;
    for (const auto& p : b.parameters.list()) g.emplace_back(p.grads().begin(), p.grads().end());
    return g;
  }
  // Names of parameters with an element whose gradient is as good as zero.
  std::string dead(double limit = 1e-9) {
    gradients(Verbs::advance, Keep::everything);
    std::string names;
    for (const auto& p : b.parameters.list()) for (std::size_t i = 0; i < p.grads().size(); ++i)
      if (!(std::fabs(p.grads()[i]) > limit)) {
        names += fmt::format("{}[{}] ", p.name, i);
        break;
      }
    return names;
  }

  // ---- plain loops of one token
  using Row = std::vector<double>;
  Row times_branch(int k, const Row& u) {
    Row y(std::size_t(d), 0);
    for (int o = 0; o < d; ++o)
      for (int i = 0; i < d; ++i) y[std::size_t(o)] += branch(k)[o * d + i] * u[std::size_t(i)];
    return y;
  }
  Row norm(const Row& x, const R* gain, double eps) const {
    double square = 0;
    for (const double a : x) square += a * a;
    Row u;
    for (int i = 0; i < d; ++i)
      u.push_back((gain ? gain[i] : 1) * x[std::size_t(i)] / std::sqrt(square / d + eps));
    return u;
  }
  Row token(const R* rows, int t) const {
    return {rows + std::ptrdiff_t(t) * d, rows + std::ptrdiff_t(t + 1) * d};
  }
  std::string gain_name(int k) const { return sublayer_name(k) + "_norm.weight"; }
};

}  // namespace depthbench::testing
