// Counts against closed forms and the published numbers. The closed forms stand here alone: the library counts.
#include <nlohmann/json.hpp>

#include "tests/account/designs.hpp"
#include "tests/catch.hpp"
#include "tests/io/temp_folder.hpp"

using namespace depthbench;
using depthbench_test::counted;

namespace {

// Table 3 of the paper, 400M, 16 heads, vocabulary 50280.
ModelConfig shape_400m(int L) {
  static const std::map<int, std::pair<int, int>> shapes{{16, {1216, 3248}}, {20, {1120, 2992}}, {24, {1024, 2736}}, {28, {960, 2560}},
                                                         {32, {896, 2400}},  {42, {800, 2144}},  {70, {640, 1712}}};
  const auto [d, f] = shapes.at(L);
  return {.vocab_size = 50280, .d_model = d, .n_layers = L, .n_heads = 16, .n_kv_heads = 16, .ffn_hidden = f};
}
constexpr double T = 4096;

}  // namespace

TEST_CASE("account: the totals of all 32 shapes and ten designs") {
  const auto file =
      nlohmann::json::parse(depthbench_test::read_whole(std::string(DEPTHBENCH_SOURCE_DIR) + "/tests/golden/expected_counts.json"));
  int compared = 0;
  for (const auto& [name, shape] : file["shapes"].items()) {
    const ModelConfig c{.vocab_size = shape["vocab_size"],
                        .d_model = shape["d_model"],
                        .n_layers = shape["n_layers"],
                        .n_heads = shape["n_heads"],
                        .n_kv_heads = shape["n_kv_heads"],
                        .ffn_hidden = shape["ffn_hidden"]};
    for (const auto& [design, total] : shape["totals"].items()) {
      const ParameterCounts p = counted(design, c, {.seq_len = 2}).parameters;
      INFO(name << " " << design);
      CHECK(p.total() == total.get<std::int64_t>());
      CHECK(p.backbone == shape["backbone_pre_ln"].get<std::int64_t>());
      ++compared;
    }
  }
  CHECK(compared == 320);
}

TEST_CASE("account: parameters of the designs at L = 24") {
  const auto extra = [](const char* design) { return counted(design, shape_400m(24), {.seq_len = 2}).parameters.residual; };
  CHECK(extra("pre_ln") == 0);
  CHECK(extra("hc") == 296160);
  CHECK(extra("attn_res") == 98304);
  CHECK(extra("block_attn_res") == 98304);
  CHECK(extra("mhc") == 4719888);
  CHECK(extra("moda") == 48234496);
  CHECK(extra("sandwich_ln") == 49152);
  CHECK(extra("keel") == 48128);
}

TEST_CASE("account: the body's forward FLOPs and the share of attention") {
  for (const int L : {16, 20, 24, 28, 32, 42, 70}) {
    const ModelConfig c = shape_400m(L);
    const double d = c.d_model, f = c.ffn_hidden;
    for (const char* design : {"pre_ln", "hc", "moda"}) {  // the same for every design
      const Cost cost = counted(design, c);
      CHECK(cost.flops.forward.gemm == Approx(2 * T * L * (4 * d * d + 3 * d * f)).epsilon(1e-12));
      CHECK(cost.flops.forward.attention == Approx(2 * T * T * d * L).epsilon(1e-12));
      CHECK(cost.flops.forward.head == Approx(2 * T * d * 50280).epsilon(1e-12));
    }
  }
  const Work shallow = counted("pre_ln", shape_400m(16)).flops.forward, deep = counted("pre_ln", shape_400m(70)).flops.forward;
  CHECK(shallow.body() * 1e-12 == Approx(2.98).margin(0.005));
  CHECK(deep.body() * 1e-12 == Approx(4.33).margin(0.005));
  CHECK(shallow.attention_share() == Approx(0.219).margin(0.0005));
  CHECK(deep.attention_share() == Approx(0.347).margin(0.0005));
}

TEST_CASE("account: the backward pass: two products for one, attention 2.5 times with its scores formed again") {
  const BothPasses flops = counted("pre_ln", shape_400m(24)).flops;
  CHECK(flops.backward.gemm == Approx(2 * flops.forward.gemm).epsilon(1e-12));
  CHECK(flops.backward.head == Approx(2 * flops.forward.head).epsilon(1e-12));
  CHECK(flops.backward.attention == Approx(2.5 * flops.forward.attention).epsilon(1e-12));
}

TEST_CASE("account: recomputation runs the body once more, and not the head") {
  const Cost cost = counted("hc", shape_400m(24));
  const double once = cost.flops.forward.body() + cost.flops.forward.residual + cost.flops.forward.norms + cost.flops.forward.other;
  CHECK(cost.recompute_flops == Approx(once).epsilon(0.001));  // cross-entropy, embedding and the last norm are not run again
  CHECK(cost.memory.peak_recompute < 0.6 * cost.memory.peak);
}

// 192 T d L: 96 d a sublayer, of 40 d and 8 d for projections, 40 d for mixing and 8 d for the write.
TEST_CASE("account: Hyper-Connections are the paper's 192 T d L and the coefficients' few numbers") {
  for (const int L : {16, 24, 70}) {
    const double d = shape_400m(L).d_model, has = counted("hc", shape_400m(L)).flops.forward.residual;
    CHECK(has == Approx(192 * T * d * L).epsilon(0.02));
    CHECK(has == Approx(192 * T * d * L + T * (2 * L * 121 + 4 * d)).epsilon(0.0002));  // 121 a sublayer; the streams' sum at the end
  }
}

// 480 T d L: 240 d a sublayer, of 192 d for phi, 8 d for the read, 32 d and 8 d for the write.
TEST_CASE("account: mHC is the paper's 480 T d L and Sinkhorn, which it leaves out") {
  for (const int L : {16, 24, 70}) {
    const Work w = counted("mhc", shape_400m(L)).flops.forward;
    const double d = shape_400m(L).d_model;
    CHECK(w.residual == Approx(480 * T * d * L).epsilon(0.02));
    CHECK(w.residual_gemm == Approx(384 * T * d * L).epsilon(1e-12));
    const double coefficients = 4 + 3 * 24 + 36 + (6 * 16 + 39 * 4 * 9);  // rms, 24 arguments, 8 sigmoids, Sinkhorn with 39 half steps
    CHECK(w.residual == Approx(480 * T * d * L + T * (2 * L * coefficients + 4 * d)).epsilon(0.0005));
  }
}

// 8 T d L^2 takes every mixer to have L sources on average. Mixer k = 1 .. 2 L has min(k, 2 L) + 1 of them, the embedding
// among them: 2 L^2 + 3 L in all, 4 d each, so 8 T d L^2 + 12 T d L: 9.4 % more at L = 16, 2.1 % at L = 70.
TEST_CASE("account: AttnRes is the paper's 8 T d L^2 and the 12 T d L that its average leaves out") {
  for (const int L : {16, 24, 70}) {
    const Work w = counted("attn_res", shape_400m(L)).flops.forward;
    const double d = shape_400m(L).d_model, mixed = 2.0 * L * L + 3 * L;
    CHECK(w.residual == Approx(8 * T * d * L * L + 12 * T * d * L).epsilon(0.003));
    CHECK(w.residual_gemm == Approx(2 * T * d * mixed).epsilon(1e-12));
    CHECK(w.residual == Approx(T * mixed * (4 * d + 7)).epsilon(0.0003));  // 7: the softmax, a source
  }
  const double deep = counted("attn_res", shape_400m(70)).flops.forward.residual;
  CHECK(deep / (8 * T * 640 * 70 * 70) == Approx(1.0243).margin(0.0005));  // beyond 2 %, and so it is
  const Work body = counted("attn_res", shape_400m(70)).flops.forward;
  CHECK((body.body() + body.residual) * 1e-12 == Approx(4.43).margin(0.005));  // the published "3.0 -> 4.4"
}

TEST_CASE("account: MoDA: a projection a block but the last, and 2 i slots in the attention of block i") {
  const int L = 24;
  const double d = 1024;
  const Work w = counted("moda", shape_400m(L)).flops.forward;
  CHECK(w.residual_gemm == Approx(4 * d * d * T * (L - 1)).epsilon(1e-12));
  CHECK(w.residual_attention == Approx(4 * d * T * L * (L - 1)).epsilon(1e-12));  // sum of 2 i is L (L - 1)
}

TEST_CASE("account: Pre-LN's residual path is its additions, its norms four operations a channel") {
  const Work w = counted("pre_ln", shape_400m(24)).flops.forward;
  CHECK(w.residual ==
        Approx(T * (1024 * (47 * 2 + 1) + 48 * 6)).epsilon(1e-12));  // fused with a norm 2 (a sum of two), alone 1; 6: of 1 / rms
  CHECK(w.norms == Approx(T * 1024 * 4 * 49).epsilon(1e-5));
}

TEST_CASE("account: the KV cache") {
  CHECK(counted("pre_ln", shape_400m(16)).kv_cache == 4.0 * 4096 * 16 * 1216);
  const double shallow = kv_cache_bytes(shape_400m(16), 4096), deep = kv_cache_bytes(shape_400m(70), 4096);
  CHECK(shallow * 1e-6 == Approx(319).margin(0.5));
  CHECK(deep * 1e-6 == Approx(734).margin(0.5));
  CHECK(deep / shallow == Approx(2.30).margin(0.005));
  ModelConfig grouped = shape_400m(16);
  grouped.n_kv_heads = 8;
  CHECK(kv_cache_bytes(grouped, 4096) == shallow / 2);
}

TEST_CASE("account: FLOPs are of one sequence, whatever the batch") {
  const Cost one = counted("mhc", shape_400m(16), {.seq_len = 512}), four = counted("mhc", shape_400m(16), {.seq_len = 512, .batch = 4});
  CHECK(four.flops.forward.total() == Approx(one.flops.forward.total()).epsilon(1e-9));
  CHECK(four.flops.backward.body() == Approx(one.flops.backward.body()).epsilon(1e-12));
  CHECK(four.memory.saved > 3.5 * (one.memory.saved - 4.0 * 50280 * 1216));  // the head's gradient is there once
  CHECK(four.memory.parameters == one.memory.parameters);
}

TEST_CASE("account: refuses what no machine's integers hold, and shapes that no model has") {
  ModelConfig c = shape_400m(24);
  c.d_model = 1 << 29;
  c.n_heads = 16;
  CHECK_THROWS_WITH(counted("pre_ln", c), Catch::Matchers::Contains("2^63"));
  c = shape_400m(24);
  c.n_heads = 15;
  CHECK_THROWS_WITH(counted("pre_ln", c), Catch::Matchers::Contains("does not divide into 15 heads"));
  CHECK_THROWS_WITH(counted("pre_ln", shape_400m(24), {.seq_len = -1}), Catch::Matchers::Contains("needs 1 or more"));
  CHECK_THROWS_WITH(counted("pre_ln", shape_400m(24), {.seq_len = 1 << 20, .batch = 1 << 20}),
                    Catch::Matchers::Contains("more than 4194304 tokens"));
}
