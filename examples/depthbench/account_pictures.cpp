// Costs against the aspect ratio, one line a design.
#include <algorithm>
#include <filesystem>
#include <map>

#include "account.hpp"
#include "depthbench/io/atomic_file.hpp"

namespace depthbench::app {
namespace {

struct Picture {
  const char *file, *label, *title;
  double (*y)(const Cost&);
};

// FLOPs of attention over the past and over depth, of all products of the blocks
double attention_share(const Cost& c) {
  const Work& w = c.flops.forward;
  const double attention = w.attention + w.residual_attention;
  return 100 * attention / (w.body() + w.residual_attention);
}
constexpr Picture pictures[] = {
    {"flops.svg", "forward FLOPs of one sequence, without head (TFLOP)", "FLOPs against aspect ratio",
     [](const Cost& c) {
       return 1e-12 * (c.flops.forward.body() + c.flops.forward.residual + c.flops.forward.norms);
     }},
    {"attention_share.svg", "attention, share of the body's FLOPs (%)",
     "share of attention against aspect ratio", attention_share},
    {"kv_cache.svg", "KV cache of one sequence, bfloat16 (MB)", "KV cache against aspect ratio",
     [](const Cost& c) { return 1e-6 * c.kv_cache; }},
    {"residual.svg", "residual design, FLOPs in % of the body", "residual overhead against aspect ratio",
     [](const Cost& c) { return 100 * c.flops.forward.residual / c.flops.forward.body(); }},
    {"memory.svg", "peak memory of a training step (GB)", "training memory against aspect ratio",
     [](const Cost& c) { return 1e-9 * c.memory.peak; }},
    {"memory_recompute.svg", "peak memory with recomputation (GB)",
     "training memory with recomputation against aspect ratio",
     [](const Cost& c) { return 1e-9 * c.memory.peak_recompute; }},
};

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
    double low = 1e300, high = 0, narrow = 1e300, wide = 0;
    for (std::size_t i = 0; i < designs.size(); ++i) {
      ChartSeries series{designs[i], int(i % chart_colors), {}, true};
      for (const Account& a : accounts)
        if (a.design == designs[i]) {
          const double x = double(a.cost.model.d_model) / a.cost.model.n_layers, y = picture.y(a.cost);
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
    chart.y = fitted_axis(picture.label, low, high);
    chart.y.low = std::max(0.0, chart.y.low);
    if (low > 0 && high > 30 * low) {  // designs that differ by orders of magnitude
      chart.y = {picture.label, low * 0.8, high * 1.25, true, {}};
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
