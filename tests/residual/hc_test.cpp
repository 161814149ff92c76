#include "depthbench/residual/hc.hpp"

#include "depthbench/residual/pre_ln.hpp"
#include "tests/catch.hpp"
#include "tests/residual/chain.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

using Design = Hc<Cpu, double>;
std::unique_ptr<Chain::Design> hc(int n) {
  return std::make_unique<Design>(DesignOptions{{"n_streams", double(n)}});
}
std::string connection(int k) { return sublayer_name(k) + "_hyper_connection."; }

// Streams of one token through all sublayers; states are appended.
std::vector<Row> formula(Chain& c, int n, int t, std::vector<std::vector<double>>& states) {
  std::vector<Row> x(std::size_t(n), c.token(c.x(), t));
  const auto keep = [&](int l) {
    for (const auto& s : x) states[std::size_t(l)].insert(states[std::size_t(l)].end(), s.begin(), s.end());
  };
  for (int k = 0; k < c.sublayers; ++k) {
    if (k % 2 == 0) keep(k / 2);
    const auto p = [&](const char* name) { return c.at(connection(k) + name); };
    std::vector<Row> A;
    Row write, u(std::size_t(c.d), 0);
    for (int s = 0; s < n; ++s) {
      const Row h = c.norm(x[std::size_t(s)], nullptr, 1e-8);
      A.emplace_back();
      for (int j = 0; j <= n; ++j) {
        double z = 0;
        for (int i = 0; i < c.d; ++i) z += h[std::size_t(i)] * p("dynamic_alpha_proj")[i * (n + 1) + j];
        A.back().push_back(p("static_alpha")[s * (n + 1) + j] + *p("dynamic_alpha_scale") * std::tanh(z));
      }
      double z = 0;
      for (int i = 0; i < c.d; ++i) z += h[std::size_t(i)] * p("dynamic_beta_proj")[i];
      write.push_back(p("static_beta")[s] + *p("dynamic_beta_scale") * std::tanh(z));
      for (int i = 0; i < c.d; ++i) u[std::size_t(i)] += A.back()[0] * x[std::size_t(s)][std::size_t(i)];
    }
    const Row y = c.times_branch(k, c.norm(u, c.at(c.gain_name(k)), c.norm_eps));
    std::vector<Row> next(std::size_t(n), Row(std::size_t(c.d), 0));
    for (int o = 0; o < n; ++o) for (int i = 0; i < c.d; ++i) {
        for (int s = 0; s < n; ++s)
          next[std::size_t(o)][std::size_t(i)] +=
              A[std::size_t(s)][std::size_t(o + 1)] * x[std::size_t(s)][std::size_t(i)];
        next[std::size_t(o)][std::size_t(i)] += write[std::size_t(o)] * y[std::size_t(i)];
    }
    x = next;
  }
  keep(c.sublayers / 2);
  return x;
}

}  // namespace

TEST_CASE("hc: equals its formula for any number of streams", "[residual]") {
  for (const int n : {1, 2, 3, 4, 8}) {
    Chain c(hc(n), 5, 6, 4, 1e-2);
    c.randomize();
    std::vector<double> needs;
    std::vector<std::vector<double>> states(3);
    for (int t = 0; t < 5; ++t) {
      Row sum(6, 0);
      for (const auto& s : formula(c, n, t, states)) for (std::size_t i = 0; i < 6; ++i) sum[i] += s[i];
      needs.insert(needs.end(), sum.begin(), sum.end());
    }
    CAPTURE(n);
    CHECK(error_of(c.run().values(), needs) < 1e-12);
    CHECK(largest(c.states, states) < 1e-12);
  }
}

TEST_CASE("hc: gradient agrees with finite differences", "[residual]") {
  for (const int n : {1, 2, 3, 4}) {
    Chain c(hc(n), 3, 5, 4, 1e-2);
    c.randomize();
    const auto check = c.b.check([&] { return probe(c.run()); }, 2);
    CAPTURE(n, check.parameter);
    CHECK(check.worst < 1e-6);
  }
}

TEST_CASE("hc: every parameter is alive at a random point", "[residual]") {
  for (const int n : {2, 3, 4}) {
    Chain c(hc(n), 7, 5, 4, 1e-2);
    c.randomize();
    CHECK(c.dead() == "");
  }
}

TEST_CASE(
    "hc: at initialisation it is Pre-LN, every stream of every state bit for bit, and the read-out n times "
    "it",
    "[residual]") {
  for (const int n : {1, 2, 3, 4, 8}) {
    Chain c(hc(n), 7, 5, 6), plain(std::make_unique<PreLn<Cpu, double>>(), 7, 5, 6);
    for (int i = 0; i < 7; ++i) CHECK(c.b.values(i) == plain.b.values(i));  // the same embedding and branches
    const auto out = copy_of(c.run()), needs = copy_of(plain.run());
    int wrong = 0;
    for (std::size_t l = 0; l < 4; ++l)
      for (int t = 0; t < 7; ++t)
        for (int s = 0; s < n; ++s)
          for (int i = 0; i < 5; ++i)
            wrong += c.states[l][std::size_t((t * n + s) * 5 + i)] != plain.states[l][std::size_t(t * 5 + i)];
    CAPTURE(n);
    CHECK(wrong == 0);
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i] == Approx(n * needs[i]).epsilon(1e-15));
  }
}

TEST_CASE("hc: at initialisation the read column of sublayer k takes stream k mod n", "[residual]") {
  Chain c(hc(3), 1, 4, 8);
  for (int k = 0; k < 8; ++k) {
    const double *a = c.at(connection(k) + "static_alpha"), *b = c.at(connection(k) + "static_beta");
    for (int s = 0; s < 3; ++s) {
      CHECK(a[s * 4] == (s == k % 3));
      for (int o = 0; o < 3; ++o) CHECK(a[s * 4 + 1 + o] == (s == o));
      CHECK(b[s] == 1);
    }
    CHECK(*c.at(connection(k) + "dynamic_alpha_scale") == 0.01);
    CHECK(*c.at(connection(k) + "dynamic_beta_scale") == 0.01);
    CHECK(c.at(connection(k) + "dynamic_alpha_proj")[5] == 0);
    CHECK(c.at(connection(k) + "dynamic_beta_proj")[3] == 0);
  }
}

TEST_CASE("hc: at initialisation the scales are dead, the projections are not", "[residual]") {
  Chain c(hc(2), 7, 5, 4, 1e-2);
  c.gradients(Verbs::advance, Keep::everything);
  for (int k = 0; k < 4; ++k) {
    for (const auto* name : {"dynamic_alpha_scale", "dynamic_beta_scale"})
      CHECK(c.b.parameters[connection(k) + name].grads()[0] == 0);
    for (const auto* name : {"dynamic_alpha_proj", "dynamic_beta_proj"})
      for (const double g : c.b.parameters[connection(k) + name].grads()) CHECK(std::fabs(g) > 1e-12);
  }
}

TEST_CASE("hc: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  for (const int n : {2, 3, 4}) {
    Chain c(hc(n), 7, 5, 6);
    c.randomize();
    const auto kept = c.gradients(Verbs::advance, Keep::everything);
    CHECK(c.gradients(Verbs::advance, Keep::recomputed) == kept);
    CHECK(largest(c.gradients(Verbs::write_then_read, Keep::everything), kept) < 1e-12);
  }
}

TEST_CASE("hc: keeps its invariant, streams renamed everywhere change nothing", "[residual]") {
  constexpr int n = 4;
  Chain a(hc(n), 7, 5, 6), b(hc(n), 7, 5, 6);
  a.randomize();
  b.randomize();
  const int to[n] = {2, 0, 3, 1};  // stream s of a is stream to[s] of b
  for (int k = 0; k < 6; ++k) {
    const auto move = [&](const char* name, auto index_a, auto index_b, int count) {
      for (int i = 0; i < count; ++i)
        b.find(connection(k) + name)[index_b(i)] = a.find(connection(k) + name)[index_a(i)];
    };
    const auto column = [&](int j) { return j == 0 ? 0 : to[j - 1] + 1; };
    move(
        "static_alpha", [](int i) { return i; },
        [&](int i) { return to[i / (n + 1)] * (n + 1) + column(i % (n + 1)); }, n * (n + 1));
    move(
        "dynamic_alpha_proj", [](int i) { return i; },
        [&](int i) { return i / (n + 1) * (n + 1) + column(i % (n + 1)); }, 5 * (n + 1));
    move("static_beta", [](int i) { return i; }, [&](int i) { return to[i]; }, n);
  }
  const auto out_a = copy_of(a.run()), out_b = copy_of(b.run());
  CHECK(error_of(out_b, out_a) < 1e-13);
  double worst = 0, same = 0;
  for (int t = 0; t < 7; ++t) for (int s = 0; s < n; ++s) for (int i = 0; i < 5; ++i) {
    const double x = a.states[3][std::size_t((t * n + s) * 5 + i)];
    worst = std::max(worst, std::fabs(x - b.states[3][std::size_t((t * n + to[s]) * 5 + i)]));
    same = std::max(same, std::fabs(x - b.states[3][std::size_t((t * n + s) * 5 + i)]));
  }
  CHECK(worst < 1e-11);
  CHECK(same > 0.01);  // the streams do differ
}

TEST_CASE("hc: names, decay, head and initial scale", "[residual]") {
  Chain c(hc(4), 1, 6, 2);
  auto& p = c.b.parameters;
  for (const int k : {0, 1}) {
    CHECK(p[connection(k) + "static_alpha"].shape == Shape{4, 5});
    CHECK(p[connection(k) + "static_alpha"].decay == Decay::no);
    CHECK(p[connection(k) + "static_beta"].shape == Shape{4});
    CHECK(p[connection(k) + "static_beta"].decay == Decay::no);
    CHECK(p[connection(k) + "dynamic_alpha_proj"].shape == Shape{6, 5});
    CHECK(p[connection(k) + "dynamic_alpha_proj"].decay == Decay::yes);
    CHECK(p[connection(k) + "dynamic_beta_proj"].shape == Shape{6});
    CHECK(p[connection(k) + "dynamic_beta_proj"].decay == Decay::yes);
    CHECK(p[connection(k) + "dynamic_alpha_scale"].shape == Shape{});
    CHECK(p[connection(k) + "dynamic_alpha_scale"].decay == Decay::yes);
    CHECK(p[connection(k) + "dynamic_beta_scale"].decay == Decay::yes);
  }
  CHECK(p.find("blocks.0.attention_hyper_connection.static_alpha"));
  CHECK(p.find("blocks.0.feed_forward_hyper_connection.static_alpha"));
  CHECK(p.numel(Part::residual) == 2 * (6 * 5 + 6 + 4 * 5 + 4 + 2));
  CHECK(c.design->head_eps({6, 2, 0.25}) == 0.25);
  CHECK(c.design->init_scale(Weight::out) == 0.5);
  CHECK(c.design->init_scale(Weight::w2) == 0.5);
  for (const auto w : {Weight::q, Weight::k, Weight::v, Weight::w1, Weight::w3})
    CHECK(c.design->init_scale(w) == 1);
  CHECK(Design().init_scale(Weight::out) == 0.5);  // four streams unless told otherwise
}

TEST_CASE("hc: rejects wrong options, saying which", "[residual]") {
  CHECK_THROWS_AS(hc(0), config_error);
  CHECK_THROWS_WITH(hc(0), "residual design: n_streams is 0, needs a whole number from 1 to 8");
  CHECK_THROWS_WITH(hc(9), "residual design: n_streams is 9, needs a whole number from 1 to 8");
  CHECK_THROWS_WITH(Design({{"n_streams", 2.5}}),
                    "residual design: n_streams is 2.5, needs a whole number from 1 to 8");
  CHECK_THROWS_WITH(Design({{"streams", 2}}), "residual design hc has no option streams");
}
