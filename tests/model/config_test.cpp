#include "depthbench/model/config.hpp"

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("model config: derived sizes", "[model]") {
  ModelConfig c;
  c.d_model = 672;
  c.n_heads = 16;
  c.n_kv_heads = 8;
  c.n_layers = 24;
  CHECK(c.head_dim() == 42);
  CHECK(c.kv_width() == 336);
  CHECK(c.sublayers() == 48);
  CHECK_NOTHROW(check(c));
  // 8 d / 3 rounded up to a multiple of 16, as in the published shapes
  CHECK(ModelConfig::default_ffn(672) == 1792);
  CHECK(ModelConfig::default_ffn(768) == 2048);
  CHECK(ModelConfig::default_ffn(896) == 2400);
  CHECK(ModelConfig::default_ffn(1024) == 2736);
  CHECK(ModelConfig::default_ffn(1056) == 2816);
  CHECK(ModelConfig::default_ffn(6) == 16);
  CHECK(ModelConfig::default_ffn(7) == 32);
}

TEST_CASE("model config: rejects what no model can have, saying what", "[model]") {
  const auto message = [](auto change) -> std::string {
    ModelConfig c;
    change(c);
    try {
      check(c);
    } catch (const config_error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([](auto&) {}) == "");
  CHECK(message([](auto& c) { c.vocab_size = 0; }) == "model: vocab_size is 0, needs 1 or more");
  CHECK(message([](auto& c) { c.d_model = -4; }) == "model: d_model is -4, needs 1 or more");
  CHECK(message([](auto& c) { c.n_layers = 0; }) == "model: n_layers is 0, needs 1 or more");
  CHECK(message([](auto& c) { c.n_heads = 0; }) == "model: n_heads is 0, needs 1 or more");
  CHECK(message([](auto& c) { c.n_kv_heads = 0; }) == "model: n_kv_heads is 0, needs 1 or more");
  CHECK(message([](auto& c) { c.ffn_hidden = 0; }) == "model: ffn_hidden is 0, needs 1 or more");
  CHECK(message([](auto& c) { c.n_heads = 3; }) == "model: d_model 128 does not divide into 3 heads");
  CHECK(message([](auto& c) { c.n_heads = 128; }) ==
        "model: the head size d_model / n_heads is 1, rotary positions need an even one");
  CHECK(message([](auto& c) { c.n_kv_heads = 3; }) == "model: 4 heads do not divide into 3 KV heads");
  CHECK(message([](auto& c) { c.rope_theta = 0; }) == "model: rope_theta is 0, needs a positive number");
  CHECK(message([](auto& c) { c.norm_eps = NAN; }) == "model: norm_eps is nan, needs a positive number");
}
