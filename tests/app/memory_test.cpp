// The memory that --dry-run predicts, by running the same code without data, against what runs took.
#include <cmath>
#include <nlohmann/json.hpp>

#include <cmath>
#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;

namespace {

double estimate_mb(const std::string& plan) {
  const std::size_t at = plan.find("memory      about ");
  if (at == std::string::npos) return 0;
  return std::stod(plan.substr(at + 18));
}

}  // namespace

TEST_CASE("app: the predicted memory is the peak") {
  const TempFolder folder;
  struct Case {
    const char *design, *shape;
    std::vector<std::string> more;
  };
  const std::vector<Case> cases{{"pre_ln", "6x64", {}},
                                {"hc", "6x64", {}},
                                {"attn_res", "6x64", {}},
                                {"pre_ln", "2x128", {"train.seq_len=64", "train.micro_batch=8"}},
                                {"hc", "3x96", {"residual.n_streams=2"}},
                                {"attn_res", "12x48", {}},
                                {"pre_ln", "8x64", {"train.activations=recompute"}},
                                {"hc", "8x64", {"train.activations=recompute"}},
                                {"attn_res", "8x64", {"train.activations=recompute"}},
                                {"mhc", "6x64", {}},
                                {"block_attn_res", "6x64", {}},
                                {"moda", "8x64", {}},
                                {"deepnorm", "8x64", {}}};
  int i = 0;
  for (const auto& c : cases) {
    const std::string shape = c.shape, run = (folder / ("run" + std::to_string(i++))).string();
    const std::size_t x = shape.find('x');
    const auto args = joined(
        small_run(folder, {std::string("residual.design=") + c.design, "model.n_layers=" + shape.substr(0, x),
                           "model.d_model=" + shape.substr(x + 1), "train.seq_len=128",
                           "train.global_batch_tokens=512", "train.micro_batch=4", "train.steps=2"}),
        c.more);
    const double estimate = estimate_mb(app(folder, joined({"train", "--dry-run"}, args)).out);
    REQUIRE(app(folder, joined({"train", "--out", run}, args)).exit == 0);
    const double peak =
        nlohmann::json::parse(read_whole(run + "/summary.json"))["peak_memory_bytes"].get<double>() / 1048576;
    INFO(c.design << " " << c.shape << " " << (c.more.empty() ? "" : c.more[0]) << ": estimate " << estimate
                  << " MB, peak " << peak << " MB");
    CHECK(std::fabs(estimate - peak) <= (peak < 9.95 ? 0.051 : 0.51));  // as it is rounded for people
  }
}
