// depthbench parity DIR...: the model against independent float64 cases (tests/golden/README.md).
// One JSON line a case, exit 1 if any case fails.
#include "parity.hpp"

#include "depthbench/train/adamw.hpp"
#include "golden_case.hpp"

namespace depthbench::app {
namespace {

// The golden README, section 6: relative to the largest entry of a tensor. Compact cases store float32.
struct Limits {
  double value = 1e-10, gradient = 1e-9, after = 1e-6;  // after: times the learning rate, absolute
  explicit Limits(bool compact) : state(compact ? 2e-7 : 1e-10) { if (compact) gradient = 2e-7; }
  double state;
};

struct Worst {
  double error = 0;
  std::string name;
  void add(double e, const std::string& n) {
    if (std::isnan(error) || e <= error) return;  // NaN is the worst, and stays
    error = e;
    name = n;
  }
};

// [sum p, sum p^2, sum p_i cos(0.37 i + 0.11)]
std::array<double, 3> digest(std::span<const double> p) {
  std::array<double, 3> s{};
  for (std::size_t i = 0; i < p.size(); ++i) {
    s[0] += p[i];
    s[1] += p[i] * p[i];
    s[2] += p[i] * std::cos(0.37 * double(i) + 0.11);
  }
  return s;
}

bool run_case(const std::filesystem::path& folder, Cpu& cpu, Json& line) {
  GoldenCase golden(folder, cpu);
  const Json& c = golden.json;
  const SafeTensors& file = golden.file;
  auto& model = *golden.model;
  const auto &tokens = golden.tokens, &targets = golden.targets;
  const int batch = golden.batch;
  line["design"] = c.at("design");
  const Limits limits(c.value("profile", "full") == "compact");

  double labels = 0;
  for (const auto t : targets) labels += t != ignored_target;

  Worst logits, loss, states, grads, after, losses;
  Tape<Cpu, double> tape(cpu);
  const auto made = model.logits(tape, tokens, batch, [&](int l, Var<Cpu, double> z) {
    const std::string name = fmt::format("state.{}", l);
    states.add(relative_error(z.values(), file.read_as<double>(name)), name);
  });
  logits.add(relative_error(made.values(), file.read_as<double>("logits")), "logits");
  tape.clear();

  const Json& o = c.at("adamw");
  const double lr = o.at("lr");
  Adamw<Cpu, double> adamw(model.parameters(), {o.at("betas")[0], o.at("betas")[1], o.at("eps"), o.at("weight_decay"), o.at("clip")});
  const auto want_losses = file.read_as<double>("losses");
  for (std::size_t step = 0; step < want_losses.size(); ++step) {
    const auto l = model.loss(tape, tokens, targets, batch, labels);
    const double value = *l.value();
    losses.add(relative_error(std::array{value}, std::array{want_losses[step]}), fmt::format("losses[{}]", step));
    tape.backward(l);
    if (step == 0) {
      loss.add(relative_error(std::array{value}, file.read_as<double>("loss")), "loss");
      for (const auto& p : model.parameters().list()) {
        const auto needs = file.read_as<double>("grad." + p.name);
        const bool near_zero = c.contains("near_zero_grads") && c["near_zero_grads"].contains(p.name);
        grads.add(relative_error(p.has_grad ? p.grads() : std::vector<double>(needs.size()), needs, near_zero ? 1 : 0), "grad." + p.name);
      }
    }
    adamw.step(lr);
  }
  for (const auto& p : model.parameters().list()) {
    if (file.find("after." + p.name)) {
      const auto needs = file.read_as<double>("after." + p.name);
      double worst = 0;
      for (std::size_t i = 0; i < needs.size(); ++i) worst = std::max(worst, std::fabs(p.values()[i] - needs[i]));
      after.add(worst / lr, "after." + p.name);
    } else {
      const auto needs = file.read_as<double>("after_digest." + p.name);
      const auto has = digest(p.values());
      for (int i = 0; i < 3; ++i) after.add(std::fabs(has[i] - needs[i]) / lr / double(p.numel()), "after_digest." + p.name);
    }
  }

  line["logits"] = logits.error;
  line["loss"] = loss.error;
  line["states"] = states.error;
  line["grads"] = grads.error;
  line["after"] = after.error;
  line["losses"] = losses.error;
  double share = -1;
  const auto weigh = [&](const Worst& w, double limit) {
    if (std::isnan(share) || w.error / limit <= share) return;
    share = w.error / limit;
    line["worst_tensor"] = w.name;
  };
  weigh(logits, limits.value);
  weigh(loss, limits.value);
  weigh(states, limits.state);
  weigh(grads, limits.gradient);
  weigh(after, limits.after);
  weigh(losses, limits.value);
  return share <= 1;
}

}  // namespace

int parity(const std::vector<std::string>& folders, bool analysis) {
  Cpu cpu;
  bool all = true, any = false;
  for (const auto& folder : folders) {
    if (std::filesystem::is_regular_file(folder)) continue;  // parity DIR/*: the notes beside the cases are no cases
    if (analysis && !std::filesystem::exists(std::filesystem::path(folder) / "analysis.json") &&
        std::filesystem::exists(std::filesystem::path(folder) / "case.json"))
      continue;  // a case without analyses
    any = true;
    Json line;
    line["case"] = std::filesystem::path(folder).filename().string();
    line["design"] = nullptr;
    bool ok = false;
    try {
      ok = analysis ? run_analysis_case(folder, cpu, line) : run_case(folder, cpu, line);
    } catch (const std::exception& e) {
      line["error"] = e.what();
    }
    line["ok"] = ok;
    fmt::print("{}\n", line.dump());
    all = all && ok;
  }
  if (!any) fmt::print(stderr, "depthbench: parity: there is no case{} among the arguments\n", analysis ? " with an analysis.json" : "");
  return all && any ? 0 : 1;
}

}  // namespace depthbench::app
