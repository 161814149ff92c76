// Designs at their initial values beside Pre-LN with the same weights: the golden cases `*_init`.
#include "tests/catch.hpp"
#include "tests/model/golden_case.hpp"
#include "tests/residual/models.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

std::vector<double> logits(const std::string& name, double norm_eps = 0) {
  Cpu cpu(1);
  Tape<Cpu, double> tape(cpu);
  GoldenCase<double> c(cpu, name);
  if (norm_eps == 0) return copy_of(c.model->logits(tape, c.tokens, c.batch));
  auto config = c.model->config();
  config.norm_eps = norm_eps;
  Transformer<Cpu, double> other(cpu, config, Designs<Cpu, double>().make(c.design));
  other.initialize(1);
  for (auto& p : other.parameters().list()) {
    const auto& from = c.model->parameters()[p.name];
    std::copy(from.value, from.value + from.numel(), p.value);
  }
  return copy_of(other.logits(tape, c.tokens, c.batch));
}

}  // namespace

// What the golden README's section 7 says, as the largest difference of a logit.
TEST_CASE("initial values: how far each design starts from Pre-LN", "[residual]") {
  const auto pre_ln = logits("pre_ln_init");
  const auto distance = [&](const char* design) {
    const auto other = logits(fmt::format("{}_init", design));
    double worst = 0;
    for (std::size_t i = 0; i < other.size(); ++i) worst = std::max(worst, std::fabs(other[i] - pre_ln[i]));
    return worst;
  };
  CHECK(distance("hc") == Approx(5e-7).epsilon(0.1));
  CHECK(distance("mhc") == Approx(2.2e-5).epsilon(0.1));
  CHECK(distance("attn_res") == Approx(6e-4).epsilon(0.1));
  CHECK(distance("block_attn_res") == Approx(2e-4).epsilon(0.2));
  for (const auto* other : {"sandwich_ln", "lns", "deepnorm", "keel", "moda"}) CHECK(distance(other) > 0.1);
}

TEST_CASE("initial values: what is left of the difference is eps", "[residual]") {
  // Pre-LN with eps (nearly) 0 and AttnRes, whose first norm alone has the model's eps: eps 1e-5 of the others remains.
  const auto small = logits("pre_ln_init", 1e-12), usual = logits("pre_ln_init"), large = logits("pre_ln_init", 1e-5);
  const double by_eps = error_of(large, usual);
  CHECK(by_eps > 1e-5);
  CHECK(error_of(small, usual) < 0.2 * by_eps);
  CHECK(error_of(logits("attn_res_init"), usual) > by_eps);  // eps times the square of the number of sources
}
