// Whole models of the ten designs in double against plain loops, over shapes that no golden case has: any number of streams, any
// group size, any number of KV heads, heads of two channels, widths that fill no register, many sources, one layer.
#include "tests/catch.hpp"
#include "tests/residual/models.hpp"
#include "tests/residual/whole_loops.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// Largest difference of logits, relative to the largest, of two sequences.
double error_against_loops(const Named& named, const ModelConfig& c, int seq = 6) {
  Whole<double> m(named, c, seq);
  m.randomize();
  WholeLoops loops{named.design, named.options.all(), c, [&](const std::string& name) { return m.model.parameters()[name].value; }};
  std::vector<double> needs;
  for (int row = 0; row < m.batch; ++row) {
    const auto part = loops.logits({m.tokens.begin() + row * seq, m.tokens.begin() + (row + 1) * seq});
    needs.insert(needs.end(), part.begin(), part.end());
  }
  return error_of(m.logits(), needs);
}
const std::vector<Named> ten{{"pre_ln", {}}, {"sandwich_ln", {}}, {"lns", {}}, {"deepnorm", {}}, {"keel", {}}, {"hc", {}}, {"mhc", {}},
                             {"attn_res", {}}, {"block_attn_res", {{"block_size", 3}}}, {"moda", {}}};
constexpr double limit = 1e-10;  // of the golden cases

}  // namespace

TEST_CASE("every design: equals plain loops with one layer, two and five", "[residual]") {
  for (const auto& named : ten) for (const int layers : {1, 2, 5}) {
    CAPTURE(text_of(named), layers);
    CHECK(error_against_loops(named, model_config(layers, 4, 2, 4)) < limit);
  }
}

TEST_CASE("every design: equals plain loops for 1 to 8 query heads a KV head, heads of 2 channels, and odd widths", "[residual]") {
  for (const auto& named : ten) {
    for (const int group : {1, 2, 3, 4, 5, 6, 7, 8}) for (const int kv_heads : {1, 2}) {
      CAPTURE(text_of(named), group, kv_heads);
      CHECK(error_against_loops(named, model_config(2, group * kv_heads, kv_heads, 2), 5) < limit);  // d = 2 .. 32
    }
    auto c = model_config(3, 3, 3, 6);
    c.ffn_hidden = 1;
    c.vocab_size = 13;
    CAPTURE(text_of(named));
    CHECK(error_against_loops(named, c, 9) < limit);
    CHECK(error_against_loops(named, model_config(1, 1, 1, 2), 1) < limit);
    CHECK(error_against_loops(named, model_config(2, 1, 1, 34), 51) < limit);  // more tokens than a tile of scores
  }
}

TEST_CASE("hc and mhc: equal plain loops for any number of streams and iterations", "[residual]") {
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8}) {
    CAPTURE(n);
    CHECK(error_against_loops({"hc", {{"n_streams", double(n)}}}, model_config(3, 3, 1, 6), 19) < limit);
    for (const int iterations : {1, 5, 20, 64}) {
      CAPTURE(iterations);
      const Named mhc{"mhc", {{"n_streams", double(n)}, {"sinkhorn_iters", double(iterations)}}};
      CHECK(error_against_loops(mhc, model_config(2, 3, 1, 6), 19) < limit);
    }
  }
}

TEST_CASE("block_attn_res: equals plain loops for any group size, also beyond the number of sublayers", "[residual]") {
  for (const int layers : {1, 2, 5}) for (const int size : {1, 2, 3, 4, 5, 7, 9, 10, 11, 64, 1000}) {
    CAPTURE(layers, size);
    CHECK(error_against_loops({"block_attn_res", {{"block_size", double(size)}}}, model_config(layers, 2, 1, 4)) < limit);
  }
}

TEST_CASE("every design: equals plain loops over 70 layers, AttnRes with 141 sources", "[residual]") {
  for (const auto& named : ten) {
    CAPTURE(text_of(named));
    CHECK(error_against_loops(named, model_config(70, 2, 1, 2), 3) < (named.design == "deepnorm" || named.design == "keel" ? limit : 1e-10));
  }
  CHECK(error_against_loops({"block_attn_res", {{"block_size", 1}}}, model_config(66, 2, 1, 2), 3) < 1e-10);
}
