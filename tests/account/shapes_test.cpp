#include "depthbench/account/shapes.hpp"

#include "depthbench/account/published_shapes.hpp"
#include "tests/account/designs.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

namespace {

std::int64_t parameters(const char* design, const ModelConfig& c) {
  return count_parameters(c, Designs<ShapeOnly, float>().make(design)).total();
}
std::vector<FittedShape> fit(const ShapeQuery& q, const char* design = "pre_ln") {
  return fit_shapes(q, [design](const ModelConfig& c) { return parameters(design, c); });
}
const FittedShape* find(const std::vector<FittedShape>& shapes, int L, int d) {
  for (const auto& s : shapes)
    if (s.model.n_layers == L && s.model.d_model == d) return &s;
  return nullptr;
}

}  // namespace

TEST_CASE("shapes: every published shape is among those of its budget") {
  const std::map<std::string_view, ShapeQuery> queries{{"200m", {.budget = 200e6}},
                                                       {"300m", {.budget = 300e6}},
                                                       {"400m", {.budget = 400e6}},
                                                       {"500m", {.budget = 500e6}},
                                                       {"1600m", {.budget = 1600e6, .heads_per_kv = 2, .ffn_factor = 3}}};
  int seen = 0;
  for (const auto& [tier, query] : queries) {
    const auto shapes = fit(query);
    for (const ModelConfig& c : shapes_of_tier(tier)) {
      INFO(tier << ": L = " << c.n_layers);
      const FittedShape* s = find(shapes, c.n_layers, c.d_model);
      REQUIRE(s);
      CHECK(s->model.ffn_hidden == c.ffn_hidden);
      CHECK(s->model.n_kv_heads == c.n_kv_heads);
      CHECK(is_published(s->model));
      ++seen;
    }
  }
  CHECK(seen == 25);
}

TEST_CASE("shapes: at 405M the nearest width of every published depth is the published one") {
  const auto shapes = fit({.budget = 405e6});
  for (const ModelConfig& c : shapes_of_tier("400m")) {
    const FittedShape* s = find(shapes, c.n_layers, c.d_model);
    REQUIRE(s);
    CHECK(s->nearest);
  }
}

TEST_CASE("shapes: all within the tolerance, none left out, from wide to deep") {
  const ShapeQuery q{.budget = 30e6, .vocab_size = 8000, .heads = 4, .min_aspect = 8, .max_aspect = 80};
  const auto shapes = fit(q);
  std::size_t by_search = 0;
  for (int d = 8; d <= 2000; d += 8)
    for (int L = 1; L <= 250; ++L) {
      if (d < 8 * L || d > 80 * L) continue;
      const double n = 2.0 * 8000 * d + d + L * (4.0 * d * d + 3.0 * d * ModelConfig::default_ffn(d) + 2 * d);
      if (std::fabs(n - 30e6) <= 0.04 * 30e6) {
        ++by_search;
        CHECK(find(shapes, L, d));
      }
    }
  CHECK(by_search == shapes.size());
  CHECK(by_search > 20);
  for (std::size_t i = 1; i < shapes.size(); ++i) CHECK(shapes[i].model.n_layers >= shapes[i - 1].model.n_layers);
}

TEST_CASE("shapes: a design's own parameters against the budget") {
  const auto plain = fit({.budget = 405e6, .layers = {24}}), moda = fit({.budget = 405e6, .layers = {24}}, "moda");
  REQUIRE(!plain.empty());
  REQUIRE(!moda.empty());
  CHECK(find(plain, 24, 1024));
  CHECK(!find(moda, 24, 1024));  // 453.6M with MoDA's own
  CHECK(moda[0].model.d_model == 960);
  CHECK(moda[0].parameters == parameters("moda", moda[0].model));
}

TEST_CASE("shapes: heads of one size") {
  for (const auto& s : fit({.budget = 100e6, .heads = 0, .head_size = 64})) {
    CHECK(s.model.head_dim() == 64);
    CHECK(s.model.d_model % 64 == 0);
  }
}

TEST_CASE("shapes: impossible budgets, with the reason") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(fit({.budget = 1e6}),
                    Contains("too few") && Contains("embedding and head of 50280 tokens alone take 3.218e+06 at d = 32"));
  CHECK_THROWS_WITH(fit({.budget = 400e6, .tolerance = 1e-6}),
                    Contains("none has 4e+08 parameters within 0.0001 %; the nearest of the range is L ="));
  CHECK_THROWS_WITH(fit({.budget = 400e6, .layers = {3}}), Contains("at the depths asked for"));
  CHECK_THROWS_WITH(fit({.budget = -5}), Contains("needs 1 parameter or more"));
  CHECK_THROWS_WITH(fit({.budget = 1e19}), Contains("2^63"));
  CHECK_THROWS_WITH(fit({.budget = 1e8, .heads = 0, .head_size = 33}), Contains("even"));
  CHECK_THROWS_WITH(fit({.budget = 1e8, .heads = 16, .heads_per_kv = 3}), Contains("do not divide"));
  CHECK_THROWS_WITH(shapes_of_tier("4m"), Contains("there is no tier 4m; there are 200m, 300m, 400m, 500m, 1600m, 300m_backbone"));
}
