#include "depthbench/residual/block_attn_res.hpp"

#include "depthbench/residual/attn_res.hpp"
#include "tests/catch.hpp"
#include "tests/residual/chain.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

using Design = BlockAttnRes<Cpu, double>;
std::unique_ptr<Chain::Design> groups_of(int size) { return std::make_unique<Design>(DesignOptions{{"block_size", double(size)}}); }
std::string mixer(int k, int sublayers) {
  return k == sublayers ? "res" : fmt::format("blocks.{}.{}_res", k / 2, k % 2 ? "mlp" : "attn");
}
Row mixture(Chain& c, const std::vector<Row>& sources, int k) {
  const double *w = c.at(mixer(k, c.sublayers) + "_proj.weight"), *g = c.at(mixer(k, c.sublayers) + "_norm.weight");
  Row z, mix(std::size_t(c.d), 0);
  double sum = 0;
  for (const auto& v : sources) {
    const Row key = c.norm(v, g, 1e-5);
    double s = 0;
    for (int i = 0; i < c.d; ++i) s += w[i] * key[std::size_t(i)];
    z.push_back(std::exp(s));
    sum += z.back();
  }
  for (std::size_t j = 0; j < sources.size(); ++j) for (int i = 0; i < c.d; ++i) mix[std::size_t(i)] += z[j] / sum * sources[j][std::size_t(i)];
  return mix;
}
struct Formula {
  std::vector<double> out;
  std::vector<std::vector<double>> states;
  std::vector<std::vector<Row>> sources;  // of the read-out, by token
};
Formula formula(Chain& c, int size) {
  Formula f{{}, std::vector<std::vector<double>>(std::size_t(c.sublayers / 2 + 1)), {}};
  for (int t = 0; t < c.n; ++t) {
    std::vector<Row> bank{c.token(c.x(), t)};
    Row run;  // empty: none
    const auto state = [&](int l, const Row& z) { f.states[std::size_t(l)].insert(f.states[std::size_t(l)].end(), z.begin(), z.end()); };
    state(0, bank[0]);
    for (int k = 0; k < c.sublayers; ++k) {
      Row mix = bank[0];
      if (k > 0) {
        auto sources = bank;
        sources.push_back(run);
        mix = mixture(c, sources, k);
        if (k % 2 == 0) state(k / 2, k % size == 0 ? mix : run);
        if (k % size == 0) {
          bank = sources;
          run.clear();
        }
      }
      const Row y = c.times_branch(k, c.norm(mix, c.at(c.gain_name(k)), k == 0 ? c.norm_eps : 1e-5));
      if (run.empty()) run.assign(std::size_t(c.d), 0);
      for (int i = 0; i < c.d; ++i) run[std::size_t(i)] += y[std::size_t(i)];
    }
    bank.push_back(run);
    const Row out = mixture(c, bank, c.sublayers);
    state(c.sublayers / 2, out);
    f.out.insert(f.out.end(), out.begin(), out.end());
    f.sources.push_back(bank);
  }
  return f;
}

}  // namespace

TEST_CASE("block_attn_res: equals its formula for any group size, the last group shorter or not", "[residual]") {
  for (const int size : {1, 2, 3, 4, 5, 7, 8, 100}) for (const auto& [n, d, K] : {std::array{7, 5, 8}, {3, 17, 2}, {2, 6, 14}}) {
    Chain c(groups_of(size), n, d, K, 1e-2);
    c.randomize();
    const auto needs = formula(c, size);
    CAPTURE(size, n, d, K);
    CHECK(error_of(c.run().values(), needs.out) < 1e-12);
    CHECK(largest(c.states, needs.states) < 1e-12);
  }
}

TEST_CASE("block_attn_res: more than 128 sources", "[residual]") {
  Chain c(groups_of(1), 3, 4, 140, 1e-2);
  c.randomize();
  const auto needs = formula(c, 1);
  CHECK(needs.sources[0].size() == 141);
  CHECK(error_of(c.run().values(), needs.out) < 1e-11);
  CHECK((c.gradients(Verbs::advance, Keep::recomputed) == c.gradients(Verbs::advance, Keep::everything)));
}

TEST_CASE("block_attn_res: gradient agrees with finite differences", "[residual]") {
  for (const int size : {1, 2, 3, 4, 5, 100}) {
    Chain c(groups_of(size), 4, 5, 8, 1e-2);
    c.randomize();
    const auto check = c.b.check([&] { return probe(c.run()); });
    CAPTURE(size, check.parameter);
    CHECK(check.worst < 1e-7);
  }
}

TEST_CASE("block_attn_res: every parameter is alive at a random point", "[residual]") {
  for (const int size : {1, 2, 3, 100}) {
    Chain c(groups_of(size), 7, 5, 6, 1e-2);
    c.randomize();
    CHECK(c.dead() == "");
  }
}

TEST_CASE("block_attn_res: at initialisation only the mixers' gains are dead", "[residual]") {
  Chain c(groups_of(3), 7, 5, 4, 1e-2);
  CHECK(c.dead() == "blocks.0.mlp_res_norm.weight[0] blocks.1.attn_res_norm.weight[0] blocks.1.mlp_res_norm.weight[0] res_norm.weight[0] ");
}

TEST_CASE("block_attn_res: at initialisation it is Pre-LN with eps times the square of the number of sources", "[residual]") {
  for (const int size : {1, 2, 3, 4, 100}) {
    Chain c(groups_of(size), 7, 5, 8, 1e-2);
    const auto out = copy_of(c.run());
    std::vector<double> pre_ln;
    for (int t = 0; t < 7; ++t) {
      Row x = c.token(c.x(), t);
      for (int k = 0; k < 8; ++k) {
        const double m = 2 + (k - 1) / size;  // embedding, finished groups, and the running one
        const Row y = c.times_branch(k, c.norm(x, nullptr, k == 0 ? 1e-2 : 1e-5 * m * m));
        for (int i = 0; i < 5; ++i) x[std::size_t(i)] += y[std::size_t(i)];
      }
      for (const double a : x) pre_ln.push_back(a / (2 + 7 / size));
    }
    CAPTURE(size);
    CHECK(error_of(out, pre_ln) < 1e-13);
  }
}

TEST_CASE("block_attn_res: reduces to AttnRes when a group is one sublayer, bit for bit", "[residual]") {
  Chain a(groups_of(1), 19, 5, 12), b(std::make_unique<AttnRes<Cpu, double>>(), 19, 5, 12), other(groups_of(4), 19, 5, 12);
  for (auto* c : {&a, &b, &other}) c->randomize();
  CHECK(copy_of(a.run()) == copy_of(b.run()));
  CHECK((a.states == b.states));
  CHECK((a.gradients(Verbs::advance, Keep::everything) == b.gradients(Verbs::advance, Keep::everything)));
  CHECK((a.gradients(Verbs::advance, Keep::recomputed) == b.gradients(Verbs::advance, Keep::recomputed)));
  CHECK(error_of(copy_of(other.run()), copy_of(b.run())) > 1e-2);
}

TEST_CASE("block_attn_res: a group longer than the model leaves two sources", "[residual]") {
  Chain c(groups_of(100), 7, 5, 6);
  c.randomize();
  CHECK(formula(c, 100).sources[0].size() == 2);
  c.run();
  auto sum = c.branches[0];
  for (std::size_t k = 1; k < 4; ++k) for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += c.branches[k][i];
  CHECK(error_of(c.states[2], sum) < 1e-14);  // the running sum
}

TEST_CASE("block_attn_res: keeps its invariant, the read-out lies between the sources", "[residual]") {
  for (const int size : {2, 3}) {
    Chain c(groups_of(size), 7, 5, 8);
    c.randomize(3);
    const auto f = formula(c, size);
    const auto out = copy_of(c.run());
    for (std::size_t t = 0; t < 7; ++t) for (std::size_t i = 0; i < 5; ++i) {
      double low = INFINITY, high = -INFINITY;
      for (const auto& v : f.sources[t]) low = std::min(low, v[i]), high = std::max(high, v[i]);
      CHECK(out[t * 5 + i] >= low - 1e-12);
      CHECK(out[t * 5 + i] <= high + 1e-12);
    }
  }
}

TEST_CASE("block_attn_res: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  for (const int size : {1, 2, 3, 4, 5, 100}) {
    Chain c(groups_of(size), 19, 5, 8);
    c.randomize();
    CAPTURE(size);
    const auto kept = c.gradients(Verbs::advance, Keep::everything);
    CHECK((c.gradients(Verbs::write_then_read, Keep::everything) == kept));
    CHECK((c.gradients(Verbs::advance, Keep::recomputed) == kept));
  }
}

TEST_CASE("block_attn_res: unless told otherwise there are about eight groups", "[residual]") {
  for (const auto& [K, size] : {std::pair{2, 1}, {8, 1}, {10, 2}, {16, 2}, {18, 3}}) {
    Chain a(std::make_unique<Design>(), 3, 5, K), b(groups_of(size), 3, 5, K);
    for (auto* c : {&a, &b}) c->randomize();
    CHECK(copy_of(a.run()) == copy_of(b.run()));
  }
}

TEST_CASE("block_attn_res: names, decay, head and initial scale", "[residual]") {
  Chain c(groups_of(2), 1, 4, 4);
  auto& p = c.b.parameters;
  CHECK_FALSE(p.find("blocks.0.attn_res_proj.weight"));
  for (const auto* at : {"blocks.0.mlp_res", "blocks.1.attn_res", "blocks.1.mlp_res", "res"}) {
    CHECK(p[std::string(at) + "_proj.weight"].shape == Shape{1, 4});
    CHECK(p[std::string(at) + "_norm.weight"].shape == Shape{4});
    CHECK(p[std::string(at) + "_proj.weight"].values()[2] == 0);
    CHECK(p[std::string(at) + "_norm.weight"].values()[2] == 1);
    CHECK(p[std::string(at) + "_proj.weight"].decay == Decay::yes);
    CHECK(p[std::string(at) + "_norm.weight"].decay == Decay::yes);
  }
  CHECK(p.list().size() == 1 + 4 + 4 + 8);
  CHECK(c.design->head_eps({4, 4, 0.25, 0}) == 1e-5);
  CHECK(c.design->init_scale(Weight::out) == 1);
}

TEST_CASE("block_attn_res: rejects wrong options, saying which", "[residual]") {
  CHECK_THROWS_AS(groups_of(-1), config_error);
  CHECK_THROWS_WITH(groups_of(-1), "residual design: block_size is -1, needs a whole number from 0 to 1048576");
  CHECK_THROWS_WITH(Design({{"block_size", 1.5}}), "residual design: block_size is 1.5, needs a whole number from 0 to 1048576");
  CHECK_THROWS_WITH(Design({{"n_streams", 2}}), "residual design block_attn_res has no option n_streams");
}
