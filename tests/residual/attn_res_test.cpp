#include "depthbench/residual/attn_res.hpp"

#include "tests/catch.hpp"
#include "tests/residual/chain.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

std::unique_ptr<Chain::Design> attn_res() { return std::make_unique<AttnRes<Cpu, double>>(); }
std::string mixer(int k, int sublayers) {
  return k == sublayers ? "res" : fmt::format("blocks.{}.{}_res", k / 2, k % 2 ? "mlp" : "attn");
}
Row mixture(Chain& c, const std::vector<Row>& sources, int k) {
  const double *w = c.at(mixer(k, c.sublayers) + "_proj.weight"),
               *g = c.at(mixer(k, c.sublayers) + "_norm.weight");
  Row z, mix(std::size_t(c.d), 0);
  double sum = 0;
  for (const auto& v : sources) {
    const Row key = c.norm(v, g, 1e-5);
    double s = 0;
    for (int i = 0; i < c.d; ++i) s += w[i] * key[std::size_t(i)];
    z.push_back(std::exp(s));
    sum += z.back();
  }
  for (std::size_t j = 0; j < sources.size(); ++j)
    for (int i = 0; i < c.d; ++i) mix[std::size_t(i)] += z[j] / sum * sources[j][std::size_t(i)];
  return mix;
}

}  // namespace

TEST_CASE("attn_res: equals its formula", "[residual]") {
  for (const auto& [n, d, K] : {std::array{7, 5, 6}, {3, 17, 2}, {18, 4, 40}}) {
    Chain c(attn_res(), n, d, K, 1e-2);
    c.randomize();
    std::vector<double> needs;
    std::vector<std::vector<double>> states(std::size_t(K / 2 + 1));
    for (int t = 0; t < n; ++t) {
      std::vector<Row> sources{c.token(c.x(), t)};
      for (int k = 0; k < K; ++k) {
        const Row mix = k == 0 ? sources[0] : mixture(c, sources, k);
        if (k % 2 == 0)
          states[std::size_t(k / 2)].insert(states[std::size_t(k / 2)].end(), mix.begin(), mix.end());
        sources.push_back(c.times_branch(k, c.norm(mix, c.at(c.gain_name(k)), k == 0 ? 1e-2 : 1e-5)));
      }
      const Row out = mixture(c, sources, K);
      states.back().insert(states.back().end(), out.begin(), out.end());
      needs.insert(needs.end(), out.begin(), out.end());
    }
    CAPTURE(n, d, K);
    CHECK(error_of(c.run().values(), needs) < 1e-12);
    CHECK(largest(c.states, states) < 1e-12);
  }
}

TEST_CASE("attn_res: gradient agrees with finite differences", "[residual]") {
  for (const int K : {2, 4, 12}) {
    Chain c(attn_res(), 4, 5, K, 1e-2);
    c.randomize();
    CHECK(c.b.check([&] { return probe(c.run()); }).worst < 1e-7);
  }
}

TEST_CASE("attn_res: every parameter is alive at a random point", "[residual]") {
  Chain c(attn_res(), 7, 5, 6, 1e-2);
  c.randomize();
  CHECK(c.dead() == "");
}

TEST_CASE("attn_res: at initialisation only the mixers' gains are dead", "[residual]") {
  Chain c(attn_res(), 7, 5, 4, 1e-2);
  CHECK(c.dead() ==
        "blocks.0.mlp_res_norm.weight[0] blocks.1.attn_res_norm.weight[0] blocks.1.mlp_res_norm.weight[0] "
        "res_norm.weight[0] ");
}

TEST_CASE(
    "attn_res: at initialisation it is the mean of all sources, and Pre-LN with eps times the square of "
    "their number",
    "[residual]") {
  Chain c(attn_res(), 7, 5, 6, 1e-2);
  const auto out = copy_of(c.run());
  std::vector<double> mean(35), pre_ln;
  for (std::size_t i = 0; i < 35; ++i) {
    mean[i] = c.states[0][i];
    for (const auto& y : c.branches) mean[i] += y[i];
    mean[i] /= 7;
  }
  CHECK(error_of(out, mean) < 1e-14);
  for (int t = 0; t < 7; ++t) {
    Row x = c.token(c.x(), t);
    for (int k = 0; k < 6; ++k) {
      const Row y = c.times_branch(k, c.norm(x, nullptr, k == 0 ? 1e-2 : 1e-5 * (k + 1) * (k + 1)));
      for (int i = 0; i < 5; ++i) x[std::size_t(i)] += y[std::size_t(i)];
    }
    for (const double a : x) pre_ln.push_back(a / 7);
  }
  CHECK(error_of(out, pre_ln) < 1e-13);
}

TEST_CASE("attn_res: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  for (const int K : {2, 6, 20}) {
    Chain c(attn_res(), 19, 5, K);
    c.randomize();
    const auto kept = c.gradients(Verbs::advance, Keep::everything);
    CHECK(c.gradients(Verbs::write_then_read, Keep::everything) == kept);
    CHECK(c.gradients(Verbs::advance, Keep::recomputed) == kept);
  }
}

TEST_CASE("attn_res: keeps its invariant, the read-out lies between the sources", "[residual]") {
  Chain c(attn_res(), 7, 5, 6);
  c.randomize(3);
  const auto out = copy_of(c.run());
  for (std::size_t i = 0; i < out.size(); ++i) {
    double low = c.states[0][i], high = low;
    for (const auto& y : c.branches) low = std::min(low, y[i]), high = std::max(high, y[i]);
    CHECK(out[i] >= low - 1e-13);
    CHECK(out[i] <= high + 1e-13);
  }
}

TEST_CASE("attn_res: names, decay, head and initial scale", "[residual]") {
  Chain c(attn_res(), 1, 4, 4);
  auto& p = c.b.parameters;
  CHECK_FALSE(p.find("blocks.0.attn_res_proj.weight"));
  for (const auto* at : {"blocks.0.mlp_res", "blocks.1.attn_res", "blocks.1.mlp_res", "res"}) {
    CHECK(p[std::string(at) + "_proj.weight"].shape == Shape{1, 4});
    CHECK(p[std::string(at) + "_norm.weight"].shape == Shape{4});
    CHECK(p[std::string(at) + "_proj.weight"].values()[2] == 0);
    CHECK(p[std::string(at) + "_norm.weight"].values()[2] == 1);
    CHECK(p[std::string(at) + "_proj.weight"].decay == Decay::yes);
  }
  CHECK(p.list().size() == 1 + 4 + 4 + 8);
  CHECK(c.design->head_eps({4, 4, 0.25}) == 1e-5);
  CHECK(c.design->init_scale(Weight::out) == 1);
}

TEST_CASE("attn_res: rejects options, saying which", "[residual]") {
  using Design = AttnRes<Cpu, double>;
  CHECK_THROWS_AS(Design({{"block_size", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"block_size", 2}}), "residual design attn_res has no option block_size");
}
