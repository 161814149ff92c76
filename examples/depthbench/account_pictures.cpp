// Costs against the aspect ratio, one line a design.
#include <algorithm>
#include <filesystem>
#include <map>

#include "account.hpp"
#include "depthbench/io/atomic_file.hpp"

namespace depthbench::app {
namespace {

struct Picture {
  const char *file, *label, *unit, *title;
  double (*y)(const Cost&);
};

// FLOPs of attention over the past and over depth, of all products of the blocks
double attention_share(const Cost& c) {
  const Work& w = c.flops.forward;
  return 100 * (w.attention + w.residual_attention) / (w.body() + w.residual_attention);
}
constexpr Picture pictures[] = {
    {"flops.svg", "blocks, forward, one sequence", "FLOP", "FLOPs against aspect ratio",
     [](const Cost& c) { return c.flops.forward.body() + c.flops.forward.residual + c.flops.forward.norms; }},
    {"attention_share.svg", "attention, of the body", "%", "share of attention against aspect ratio",
     attention_share},
    {"kv_cache.svg", "KV cache, one sequence", "B", "KV cache against aspect ratio",
     [](const Cost& c) { return c.kv_cache; }},
    {"residual.svg", "design, FLOPs of the body", "%", "residual overhead against aspect ratio",
     [](const Cost& c) { return 100 * c.flops.forward.residual / c.flops.forward.body(); }},
    {"memory.svg", "peak of a training step", "B", "training memory against aspect ratio",
     [](const Cost& c) { return c.memory.peak; }},
    {"memory_recompute.svg", "peak with recomputation", "B", "training memory, blocks recomputed",
     [](const Cost& c) { return c.memory.peak_recompute; }},
};

// The largest prefix of the unit that leaves the largest number at 1 or more.
struct Scale {
  double factor;
  const char* prefix;
};
Scale scale_of(double largest, const std::string& unit) {
  if (unit != "%")
    for (const auto& [size, prefix] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
      if (largest >= size) return {1 / size, prefix};
  return {1, ""};
}

}  // namespace

std::vector<std::pair<std::string, Chart>> account_charts(const std::vector<Account>& accounts) {
  std::vector<std::string> designs;
  std::vector<std::pair<std::string, Chart>> charts;
  for (const Account& a : accounts)
    if (std::find(designs.begin(), designs.end(), a.design) == designs.end()) designs.push_back(a.design);
  for (const Picture& picture : pictures) {
    Chart chart;
    chart.title = picture.title;
    chart.height = 440;
    double low = 1e300, high = 0, narrow = 1e300, wide = 0, largest = 0;
    for (const Account& a : accounts) largest = std::max(largest, picture.y(a.cost));
    const Scale scale = scale_of(largest, picture.unit);
    const std::string label = fmt::format("{} ({}{})", picture.label, scale.prefix, picture.unit);
    for (std::size_t i = 0; i < designs.size(); ++i) {
      ChartSeries series{designs[i], int(i % chart_colors), {}, true};
      for (const Account& a : accounts)
        if (a.design == designs[i]) {
          const double x = double(a.cost.model.d_model) / a.cost.model.n_layers,
                       y = scale.factor * picture.y(a.cost);
          series.points.push_back({x, y, 0, 0,
                                   fmt::format("{} L = {}, d = {}: {:.4g}", a.design, a.cost.model.n_layers,
                                               a.cost.model.d_model, y)});
          low = std::min(low, y);
          high = std::max(high, y);
          narrow = std::min(narrow, x);
          wide = std::max(wide, x);
        }
      std::sort(series.points.begin(), series.points.end(),
                [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
      chart.series.push_back(std::move(series));
    }
    chart.x = {"aspect ratio d / L (deep and narrow to the left)", narrow * 0.94, wide * 1.06, true, {}};
    for (const double tick : {2., 4., 8., 16., 32., 64., 128.})
      if (tick >= chart.x.low && tick <= chart.x.high) chart.x.ticks.push_back(tick);
    chart.y = fitted_axis(label, low, high);
    chart.y.low = std::max(0.0, chart.y.low);
    if (low > 0 && high > 30 * low) {  // designs that differ by orders of magnitude
      chart.y = {label, low * 0.8, high * 1.25, true, {}};
      for (const double tick : {0.01, 0.1, 1., 10., 100.})
        if (tick >= chart.y.low && tick <= chart.y.high) chart.y.ticks.push_back(tick);
    }
    charts.emplace_back(picture.file, std::move(chart));
  }
  return charts;
}

std::vector<std::string> write_account_pictures(const std::vector<Account>& accounts,
                                                const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::string> written;
  for (const auto& [file, chart] : account_charts(accounts)) {
    write_file_atomically(std::filesystem::path(folder) / file,
                          [&](AtomicFile& f) { f.write(chart_svg_file(chart)); });
    written.push_back(file);
  }
  return written;
}

}  // namespace depthbench::app
