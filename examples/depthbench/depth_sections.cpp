#include "depth_sections.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "heatmap.hpp"
#include "svg.hpp"

namespace depthbench::app {
namespace {

using Json = nlohmann::json;

struct Table {
  int rows = 0, cols = 0;
  std::vector<double> values, half_widths;
};
// A file of another program's making, or half a file, is as good as none.
struct Found {
  std::map<std::string, Table> tables;
  std::map<std::string, double> numbers;
  std::string not_defined;
};
std::vector<double> numbers_of(const Json& j) {
  std::vector<double> v;
  for (const auto& x : j) v.push_back(x.is_number() ? x.get<double>() : NAN);
  return v;
}
std::optional<Found> read_found(const std::filesystem::path& file) {
  std::ifstream in(file);
  const Json j = in ? Json::parse(in, nullptr, false) : Json();
  if (!j.is_object()) return std::nullopt;
  Found f;
  try {
    f.not_defined = j.value("not_defined", "");
    const Json tables = j.value("tables", Json::object()), numbers = j.value("numbers", Json::object());
    for (const auto& [name, t] : tables.items()) {
      Table table{t.at("rows"), t.at("cols"), numbers_of(t.at("values")), numbers_of(t.at("half_widths"))};
      if (table.rows < 1 || table.cols < 1 || table.values.size() != std::size_t(table.rows) * std::size_t(table.cols)) return std::nullopt;
      if (table.half_widths.size() != table.values.size()) table.half_widths.assign(table.values.size(), NAN);
      f.tables[name] = std::move(table);
    }
    for (const auto& [name, x] : numbers.items()) f.numbers[name] = x.is_number() ? x.get<double>() : NAN;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  return f;
}

struct Analyzed {
  std::string design;
  int n_layers, d_model, color;
  std::map<std::string, Found> found;  // by analysis
  std::string shape() const { return fmt::format("L = {}, d = {}", n_layers, d_model); }
  const Table* table(const std::string& analysis, const std::string& name) const {
    const auto f = found.find(analysis);
    if (f == found.end()) return nullptr;
    const auto t = f->second.tables.find(name);
    return t == f->second.tables.end() ? nullptr : &t->second;
  }
  double number(const std::string& analysis, const std::string& name) const {
    const auto f = found.find(analysis);
    if (f == found.end() || !f->second.numbers.contains(name)) return NAN;
    return f->second.numbers.at(name);
  }
};

// What the run itself noted of its layers, the last time it looked.
std::optional<Found> read_layers(const std::filesystem::path& metrics) {
  const auto looks = read_metrics(metrics).layers;
  if (looks.empty()) return std::nullopt;
  Found f;
  const auto row = [&](const char* name, const std::vector<double>& values) {
    if (!values.empty()) f.tables[name] = {1, int(values.size()), values, std::vector<double>(values.size(), NAN)};
  };
  row("state_rms", looks.back().layers.state_rms);
  row("grad_norm", looks.back().layers.grad_norm);
  return f;
}

std::vector<Analyzed> analyzed_runs(const Results& results) {
  std::vector<Analyzed> all;
  for (const auto& r : results.rows) {
    if (!r.is_best()) continue;
    const Summary& s = r.summary;
    const bool there = std::any_of(all.begin(), all.end(), [&](const Analyzed& a) {
      return a.design == s.design && a.n_layers == s.n_layers && a.d_model == s.d_model;
    });
    if (there) continue;
    const auto at = std::find(results.designs.begin(), results.designs.end(), s.design) - results.designs.begin();
    Analyzed a{s.design, s.n_layers, s.d_model, int(at) % chart_colors, {}};
    for (const auto& kind : analysis_kinds())
      if (auto f = read_found(r.folder / "analysis" / (std::string(kind.name) + ".json"))) a.found[kind.name] = std::move(*f);
    if (auto f = read_layers(r.folder / "metrics.jsonl")) a.found["training"] = std::move(*f);
    if (!a.found.empty()) all.push_back(std::move(a));
  }
  std::stable_sort(all.begin(), all.end(), [](const Analyzed& a, const Analyzed& b) { return a.n_layers < b.n_layers; });
  return all;
}

std::string dot(const Analyzed& a) { return fmt::format("<span class=\"dot c{}\"></span>{}", a.color, escape_html(a.design)); }

std::string number_table(const Table& t, int digits) {
  std::string out = "<div class=\"scroll\"><table class=\"small\"><tbody>";
  for (int i = 0; i < t.rows; ++i) {
    out += fmt::format("<tr><th>{}</th>", i);
    for (int j = 0; j < t.cols; ++j) {
      const double v = t.values[std::size_t(i * t.cols + j)];
      out += std::isfinite(v) ? fmt::format("<td>{:.{}f}</td>", v, digits) : "<td></td>";
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

struct Maps {  // one analysis as heat maps over designs
  const char *analysis, *table, *title, *text, *x, *y, *key;
  double top;  // of the scale; 0: the 99th percentile of all that is shown
};
constexpr Maps maps[] = {
    {"angular", "distance", "Angular distance of depth states",
     "Angle between the states before blocks i and j, as a share of pi: dark blocks of states are layers that hardly turn the stream.", "state j",
     "state i", "angle / pi", 0},
    {"causal", "score", "Causal score", "How much block l does otherwise when block s is left out: light cells are later blocks that build on earlier ones.",
     "block affected l", "block left out s", "relative change", 0},
    {"permutation", "score", "Permutation score", "What exchanging two blocks does to the loss: light cells are pairs whose order matters.", "block j",
     "block i", "relative change of the loss", 0},
    {"paths", "weight", "Residual-path weights",
     "Weight of each output (row 0 the embedding) in the inputs of later sublayers (last column the read-out), mean over tokens; shown by size.",
     "input of sublayer", "output", "|weight|", 0}};

std::string map_section(const std::vector<Analyzed>& runs, const Maps& m) {
  std::vector<double> all;
  for (const auto& r : runs) if (const auto* t = r.table(m.analysis, m.table)) for (const double v : t->values) all.push_back(std::fabs(v));
  if (all.empty()) return "";
  const double top = m.top > 0 ? m.top : quantile(all, 0.99);
  std::string out = fmt::format("<h3>{}</h3>\n<p class=\"soft\">{} One scale for all panels.</p>\n<div class=\"key-line\">{}</div>\n", m.title, m.text,
                                heatmap_key(0, top, m.key));
  std::string shape, panels, tables;
  const auto flush = [&] {
    if (!panels.empty()) out += fmt::format("<h4>{}</h4><div class=\"multiples\">{}</div>\n", shape, panels);
    panels.clear();
  };
  for (const auto& r : runs) {
    if (r.shape() != shape) flush();
    shape = r.shape();
    const auto f = r.found.find(m.analysis);
    if (f == r.found.end()) continue;
    const auto* t = r.table(m.analysis, m.table);
    if (!t) {
      panels += fmt::format("<figure><figcaption>{}</figcaption><p class=\"soft small\">not defined: {}</p></figure>", dot(r), escape_html(f->second.not_defined));
      continue;
    }
    std::vector<double> sizes;
    for (const double v : t->values) sizes.push_back(std::fabs(v));
    panels += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>", dot(r),
                          heatmap_svg({fmt::format("{}, {}, {}", m.title, r.design, r.shape()), t->rows, t->cols, sizes, 0, top, m.x, m.y}));
    tables += fmt::format("<details><summary>{}, {}</summary>{}</details>", escape_html(r.design), r.shape(), number_table(*t, 3));
  }
  flush();
  return out + "<details><summary>the numbers</summary>" + tables + "</details>\n";
}

struct Lines {  // one analysis as curves against relative depth
  const char *analysis, *table, *title, *text, *y;
  bool logarithmic = false;
};
constexpr Lines lines[] = {
    {"lens", "early_exit_ce", "Logit lens: loss of leaving early", "Cross-entropy of the head applied to each depth state.", "nats a label"},
    {"lens", "kl_final", "Logit lens: distance from the final prediction", "KL divergence of the prediction at each depth from the model's own.", "nats"},
    {"pruning", "delta", "Leaving a block out", "Loss without the block - loss; bars: 95 % intervals over windows.", "nats a label"},
    {"composed", "rank_after_sublayer", "Effective rank of composed residual maps", "Of the product of maps so far; as many as streams: kept apart, 1: become one.",
     "effective rank"},
    {"collapse", "entropy_rank", "Entropy rank of a window's tokens", "exp of the entropy of the squared singular values of the tokens at each depth.", "rank"},
    {"usefulness", "loss_ratio", "Blocks as affine maps", "Loss with a block replaced by its best affine map / loss; above 1.1 counts as useful.", "ratio"},
    {"jacobian", "deviation", "Jacobian's distance from the identity", "|J - I| / sqrt(d) of each block.", "deviation"}};
constexpr Lines training_lines[] = {
    {"training", "state_rms", "Size of the depth states", "Root mean square of the states at the end of training, the embedding first.", "RMS", true},
    {"training", "grad_norm", "Gradient of each block", "L2 norm over all parameters of a block at the end of training, before clipping.", "norm", true}};

std::string line_section(const std::vector<Analyzed>& runs, const Lines& l) {
  std::map<std::pair<int, int>, Chart> charts;
  double low = INFINITY, high = -INFINITY;
  for (const auto& r : runs) {
    const auto* t = r.table(l.analysis, l.table);
    if (!t) continue;
    Chart& c = charts[{r.n_layers, r.d_model}];
    ChartSeries s{r.design, r.color, {}, t->cols <= 20};
    for (int j = 0; j < t->cols; ++j) {
      const double v = t->values[std::size_t(j)], half = t->half_widths[std::size_t(j)];
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
      const double e = std::isfinite(half) && std::string(l.analysis) == "pruning" ? half : 0;
      s.points.push_back({t->cols > 1 ? double(j) / (t->cols - 1) : 0, v, v - e, v + e, fmt::format("{}, {}: {:.4g}", r.design, j, v)});
    }
    c.series.push_back(std::move(s));
  }
  if (charts.empty() || !(low <= high)) return "";
  std::string out = fmt::format("<h3>{}</h3>\n<p class=\"soft\">{} Against relative depth.</p>\n<p class=\"small\">", l.title, l.text);
  std::map<std::string, bool> named;
  for (const auto& r : runs) if (r.table(l.analysis, l.table) && !std::exchange(named[r.design], true)) out += dot(r) + "&ensp;";
  out += "</p>\n<div class=\"panels\">";
  for (auto& [shape, c] : charts) {
    c.title = fmt::format("{}, L = {}, d = {}", l.title, shape.first, shape.second);
    c.width = 460;
    c.height = 300;
    c.legend = false;
    c.x = {"relative depth", 0, 1, false, {0, 0.25, 0.5, 0.75, 1}};
    c.y = l.logarithmic && low > 0 ? ChartAxis{l.y, low / 1.2, high * 1.2, true, {}} : fitted_axis(l.y, low, high);
    out += fmt::format("<figure><figcaption>L = {}, d = {}</figcaption>{}</figure>\n", shape.first, shape.second, chart_svg(c));
  }
  return out + "</div>\n";
}

std::string summary_table(const std::vector<Analyzed>& runs) {
  std::string body;
  const auto cell = [](double v, double scale, const char* unit) {
    return std::isfinite(v) ? fmt::format("<td>{:.3g}{}</td>", v * scale, unit) : std::string("<td>–</td>");
  };
  for (const auto& r : runs) {
    double turn = NAN;  // mean angle of neighbouring states
    if (const auto* t = r.table("angular", "distance")) {
      turn = 0;
      for (int l = 0; l + 1 < t->rows; ++l) turn += t->values[std::size_t(l * t->cols + l + 1)] / (t->rows - 1);
    }
    body += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td>", dot(r), r.n_layers, r.d_model) + cell(turn, 1, "") +
            cell(r.number("causal", "strong_fraction_late_pairs"), 100, " %") + cell(r.number("permutation", "strong_fraction_late_pairs"), 100, " %") +
            cell(r.number("usefulness", "useful_share"), 100, " %") + cell(r.number("composed", "effective_rank"), 1, "") +
            cell(r.number("composed", "direction_overlap"), 1, "") + "</tr>\n";
  }
  return "<div class=\"scroll\"><table><thead><tr><th>design</th><th>L</th><th>d</th><th>turn a block</th><th>causal &gt; 0.45</th><th>permutation &gt; 0.15</th>"
         "<th>useful blocks</th><th>rank of maps</th><th>stream overlap</th></tr></thead><tbody>" + body + "</tbody></table></div>\n";
}

}  // namespace

std::string depth_multiples(const Results& results, const std::string& design) {
  const auto runs = analyzed_runs(results);
  const auto deepest = std::find_if(runs.rbegin(), runs.rend(), [&](const Analyzed& a) { return a.design == design; });
  if (deepest == runs.rend()) return "";
  std::string panels;
  for (const auto& m : maps) {
    std::vector<double> all, sizes;
    for (const auto& r : runs) if (const auto* t = r.table(m.analysis, m.table)) for (const double v : t->values) all.push_back(std::fabs(v));
    const auto* t = deepest->table(m.analysis, m.table);
    if (!t) continue;
    for (const double v : t->values) sizes.push_back(std::fabs(v));
    panels += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>", m.title, heatmap_svg({m.title, t->rows, t->cols, sizes, 0, quantile(all, 0.99), m.x, m.y}));
  }
  if (panels.empty()) return "";
  return fmt::format("<p class=\"soft small\">A trained model, {}; light is large, scales are those of all designs.</p><div class=\"multiples\">{}</div>\n",
                     deepest->shape(), panels);
}

std::string depth_sections(const Results& results) {
  const auto runs = analyzed_runs(results);
  std::string out, training;
  for (const auto& l : training_lines) training += line_section(runs, l);
  if (std::any_of(runs.begin(), runs.end(), [](const Analyzed& a) { return a.found.size() > a.found.count("training"); })) {
    out +=
        "<h2>Effective depth</h2>\n<p class=\"soft\">What the blocks of trained models do. Shares count pairs of blocks in the last three quarters of the "
        "model. &ldquo;turn a block&rdquo;: mean angular distance of neighbouring states.</p>\n" + summary_table(runs);
    for (const auto& m : maps) out += map_section(runs, m);
    for (const auto& l : lines) out += line_section(runs, l);
  }
  if (!training.empty()) out += "<h2>Layers in training</h2>\n" + training;
  return out;
}

}  // namespace depthbench::app
