#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "depthbench/io/atomic_file.hpp"
#include "published.hpp"
#include "svg.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

int color_of(const Results& r, const std::string& design) {
  return int(std::find(r.designs.begin(), r.designs.end(), design) - r.designs.begin()) % chart_colors;
}

Chart aspect_chart(const Results& results, double unigram) {
  Chart c;
  c.title = "validation loss against aspect ratio d / L, one line a design";
  c.width = 600;
  c.height = 360;
  std::set<double> ratios;
  double low = 1e300, high = -1e300;
  for (const auto& p : results.best) {
    ratios.insert(p.aspect_ratio());
    low = std::min(low, p.low);
    high = std::max(high, p.high);
  }
  c.x = {"d / L (left: narrow and deep, right: wide and shallow)",
         *ratios.begin() / 1.15,
         *ratios.rbegin() * 1.15,
         true,
         {ratios.begin(), ratios.end()}};
  c.y = fitted_axis("validation loss, nats a token", low, high, 0.15);
  c.rule = unigram;
  c.rule_label = "unigram entropy";
  for (const auto& design : results.designs) {
    ChartSeries s{design, color_of(results, design), {}, true};
    for (const auto& p : results.best)
      if (p.design == design)
        s.points.push_back(
            {p.aspect_ratio(), p.mean, p.low, p.high,
             fmt::format(
                 "{}, L = {}, d = {}: {:.4f}{}", design, p.n_layers, p.d_model, p.mean,
                 p.runs > 1 ? fmt::format(" ({} seeds, {:.4f} to {:.4f})", p.runs, p.low, p.high) : "")});
    if (!s.points.empty()) c.series.push_back(std::move(s));
  }
  return c;
}

// A running mean of the training loss, at most 160 points.
std::vector<ChartPoint> curve_of(const std::vector<StepLine>& steps) {
  const std::size_t window = std::max<std::size_t>(1, steps.size() / 40),
                    stride = std::max<std::size_t>(1, steps.size() / 160);
  std::vector<ChartPoint> out;
  double sum = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!std::isfinite(steps[i].loss)) break;
    sum += steps[i].loss;
    if (i >= window) sum -= steps[i - window].loss;
    if (i % stride == 0 || i + 1 == steps.size())
      out.push_back({double(steps[i].tokens) / 1e6, sum / double(std::min(i + 1, window)), 0, 0, ""});
  }
  return out;
}

// One panel a shape: the best rate's runs of every design.
std::vector<std::pair<std::string, Chart>> curve_charts(const Results& results, double unigram) {
  std::map<std::pair<int, int>, Chart> panels;
  const double top = unigram + 0.2;
  double low = 1e300, tokens = 0;
  for (const auto& r : results.rows) {
    if (!r.is_best()) continue;
    auto& c = panels[{r.summary.n_layers, r.summary.d_model}];
    ChartSeries s{r.summary.design, color_of(results, r.summary.design),
                  curve_of(read_metrics(r.folder / "metrics.jsonl").steps), false};
    std::erase_if(s.points, [&](const ChartPoint& p) { return p.y > top; });  // the first steps
    for (const auto& p : s.points) {
      low = std::min(low, p.y);
      tokens = std::max(tokens, p.x);
    }
    if (!s.points.empty()) c.series.push_back(std::move(s));
  }
  std::vector<std::pair<std::string, Chart>> out;
  for (auto& [shape, c] : panels) {
    c.title = fmt::format("training loss, L = {}, d = {}", shape.first, shape.second);
    c.width = 400;
    c.height = 280;
    c.legend = false;
    c.x = {"million tokens", 0, std::max(tokens, 1e-6), false, {}};
    c.y = fitted_axis("training loss, nats a token", std::min(low, top), top, 0.03);
    c.rule = unigram;
    c.rule_label = "unigram entropy";
    out.emplace_back(fmt::format("L = {}, d = {}", shape.first, shape.second), std::move(c));
  }
  return out;
}

Chart rate_chart(const Results& results) {
  Chart c;
  c.title = "validation loss against learning rate";
  c.width = 600;
  c.height = 320;
  std::map<std::string, std::map<double, std::vector<double>>> losses;
  std::set<double> rates;
  for (const auto& p : results.points) {
    losses[p.design][p.lr].push_back(p.mean);
    rates.insert(p.lr);
  }
  double low = 1e300, high = -1e300;
  for (const auto& design : results.designs) {
    ChartSeries s{design, color_of(results, design), {}, true};
    for (const auto& [lr, list] : losses[design]) {
      double mean = 0;
      for (const double x : list) mean += x / double(list.size());
      s.points.push_back(
          {lr, mean, 0, 0, fmt::format("{}, {:g}: {:.4f}, mean over shapes", design, lr, mean)});
      low = std::min(low, mean);
      high = std::max(high, mean);
    }
    if (!s.points.empty()) c.series.push_back(std::move(s));
  }
  c.x = {
      "peak learning rate", *rates.begin() / 1.2, *rates.rbegin() * 1.2, true, {rates.begin(), rates.end()}};
  c.y = fitted_axis("validation loss, mean over shapes", low, high, 0.15);
  return c;
}

Chart published_chart(const Results& results) {
  Chart c;
  c.title = "reported validation loss of 400M models against aspect ratio";
  c.width = 600;
  c.height = 360;
  double low = 1e300, high = -1e300, least = 1e300, most = 0;
  std::vector<double> ratios;
  for (const auto& p : published_losses) {
    ChartSeries s{p.design, published_color(results.designs, p.design) % chart_colors, {}, true};
    for (std::size_t i = 0; i < p.loss.size(); ++i) {
      if (p.loss[i] == 0) continue;
      const double ratio = published_ratio(published_layers[i]);
      s.points.push_back({ratio, p.loss[i], 0, 0, fmt::format("{}, L = {}: {} as reported", p.design, published_layers[i], p.loss[i])});
      low = std::min(low, p.loss[i]);
      high = std::max(high, p.loss[i]);
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
    c.series.push_back(std::move(s));
  }
  for (const int layers : published_layers) ratios.push_back(published_ratio(layers));
  c.legend = false;
  c.x = {"d / L", least / 1.15, most * 1.15, true, ratios};
  c.y = fitted_axis("reported validation loss, nats a token", low, high, 0.1);
  return c;
}

}  // namespace

void write_report(const Results& results, const ReportFacts& facts, const std::vector<Account>& accounts,
                  const std::filesystem::path& out) {
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically(out / name, [&](AtomicFile& f) { f.write(text); });
  };
  Pictures pictures;
  if (!results.best.empty()) {
    const Chart main = aspect_chart(results, facts.unigram_entropy);
    pictures.aspect = chart_svg(main);
    for (const auto& [name, chart] : curve_charts(results, facts.unigram_entropy))
      pictures.curves.emplace_back(name, chart_svg(chart));
    std::set<double> rates;
    for (const auto& p : results.points) rates.insert(p.lr);
    if (rates.size() > 1) pictures.rates = chart_svg(rate_chart(results));
    write("loss_by_aspect_ratio.svg", chart_svg_file(main));
  }
  if (facts.published) pictures.published = chart_svg(published_chart(results));
  for (auto& [file, chart] : account_charts(accounts)) {
    chart.width = 400;
    chart.height = 280;
    chart.legend = false;
    pictures.costs.emplace_back(chart.title, chart_svg(chart));
  }
  write("results.csv", results_csv(results));
  write("results.json", results_json(results));
  write("index.html", report_page(results, facts, pictures));
}

}  // namespace depthbench::app
