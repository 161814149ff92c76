#include "report_page.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "depth_sections.hpp"
#include "published.hpp"
#include "svg.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

constexpr const char* style = R"(
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink)}
body{font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 6px;letter-spacing:-.01em}
h2{font-size:1.15rem;margin:44px 0 6px}
p{margin:6px 0;max-width:72ch}.soft{color:var(--soft)}small,.small{font-size:.86rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;margin:22px 0 8px}
.card{border:1px solid var(--faint);border-radius:10px;padding:12px 16px}
.card b{display:block;font-size:1.5rem;font-weight:650;font-variant-numeric:tabular-nums;margin:2px 0}
.dot{display:inline-block;width:.7em;height:.7em;border-radius:50%;background:currentColor;margin-right:.45em}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(280px,1fr));gap:20px}
figure{margin:0}figure.wide{max-width:780px}figcaption{font-weight:600;margin:8px 0 2px}
.scroll{overflow-x:auto;margin-top:8px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.9rem}
th,td{padding:6px 12px 6px 0;text-align:right;white-space:nowrap;border-bottom:1px solid var(--faint)}
th{font-weight:600;color:var(--soft)}th:first-child,td:first-child{text-align:left}
tr.best td{font-weight:600}
code{font:.86rem ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
pre{margin:6px 0;padding:10px 14px;border:1px solid var(--faint);border-radius:8px;overflow-x:auto}
.warning{border-left:4px solid var(--c1);padding:4px 12px;margin:8px 0}
details{margin:6px 0}summary{cursor:pointer}
h3{font-size:1rem;margin:30px 0 4px}h4{font-size:.9rem;margin:14px 0 4px;color:var(--soft)}
.multiples{display:grid;grid-template-columns:repeat(auto-fill,minmax(170px,1fr));gap:14px}
.multiples figcaption{font-size:.86rem;margin:4px 0}.key-line{max-width:300px}
table.small th,table.small td{padding:1px 6px 1px 0;font-size:.75rem}
@media print{details{display:none}figure{break-inside:avoid}}
)";

std::string dot(const Results& r, const std::string& design) {
  const int color =
      int(std::find(r.designs.begin(), r.designs.end(), design) - r.designs.begin()) % chart_colors;
  return fmt::format("<span class=\"dot c{}\"></span>{}", color, escape_html(design));
}

std::string cards(const Results& results) {
  std::string out;
  for (const auto& design : results.designs) {
    const Point* best = nullptr;
    double worst = 0;
    for (const auto& p : results.best)
      if (p.design == design) {
        if (!best || p.mean < best->mean) best = &p;
        worst = std::max(worst, p.mean);
      }
    if (best)
      out += fmt::format(
          "<div class=\"card\">{}<b>{:.4f}</b><span class=\"soft small\">best at L = {}, d = {}<br>worst "
          "shape {:+.4f}, learning rate {:g}</span></div>",
          dot(results, design), best->mean, best->n_layers, best->d_model, worst - best->mean, best->lr);
  }
  return "<div class=\"cards\">" + out + "</div>";
}

std::string loss_table(const Results& results) {
  std::set<std::pair<int, int>, std::greater<>> shapes;  // deepest first, as in the picture
  for (const auto& p : results.best) shapes.insert({p.n_layers, p.d_model});
  std::string head, body;
  for (const auto& [L, d] : shapes) head += fmt::format("<th>L = {}, d = {}</th>", L, d);
  for (const auto& design : results.designs) {
    body += fmt::format("<tr><td>{}</td>", dot(results, design));
    for (const auto& [L, d] : shapes) {
      std::string cell = "–";
      for (const auto& p : results.best)
        if (p.design == design && p.n_layers == L && p.d_model == d)
          cell = p.runs > 1 ? fmt::format("{:.4f} <span class=\"soft\">± {:.4f}</span>", p.mean,
                                          (p.high - p.low) / 2)
                            : fmt::format("{:.4f}", p.mean);
      body += fmt::format("<td>{}</td>", cell);
    }
    body += "</tr>";
  }
  return fmt::format(
      "<div class=\"scroll\"><table><thead><tr><th>design</th>{}</tr></thead><tbody>{}</tbody></table></div>",
      head, body);
}

std::string run_table(const Results& results) {
  std::set<double> rates;
  for (const auto& r : results.rows) rates.insert(r.summary.lr);
  std::string body;
  for (const auto& r : results.rows) {
    const Summary& s = r.summary;
    const auto loss = [&](double x) {
      return std::isfinite(x) ? fmt::format("{:.4f}", x) : std::string("–");
    };
    body += fmt::format(
        "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{:.4g}</td><td>{}</td><td>{:g}</td><td>{}</td><td>{}</"
        "td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        r.is_best() && rates.size() > 1 ? " class=\"best\"" : "", dot(results, s.design), s.n_layers,
        s.d_model, double(s.d_model) / s.n_layers, s.parameters.total(), s.lr, s.seed, loss(s.train_loss),
        loss(s.validation_loss), s.seconds > 0 ? count_text(s.tokens_per_s) : "–",
        s.peak_memory ? bytes_text(double(s.peak_memory)) : "–",
        s.status == Status::diverged ? fmt::format("diverged at step {}", s.diverged_at_step)
                                     : name_of(s.status));
  }
  return "<div class=\"scroll\"><table><thead><tr><th>design</th><th>L</th><th>d</th><th>d / "
         "L</th><th>parameters</th><th>rate</th><th>seed</th><th>train loss</th><th>validation loss</th>"
         "<th>tokens/s</th><th>peak</th><th>status</th></tr></thead><tbody>" +
         body + "</tbody></table></div>";
}

std::string reproduce(const Results& results) {
  std::string out;
  for (const auto& r : results.rows) {
    std::string toml = to_toml(r.run->config);
    out += fmt::format(
        "<details><summary><code>{}</code></summary><pre><code>depthbench train --config runs/{}/config.toml "
        "--out again</code></pre><pre><code>{}</code></pre></details>\n",
        escape_html(r.run->name), escape_html(r.run->name), escape_html(toml));
  }
  return out;
}

}  // namespace

std::string page_of(const std::string& title, const std::string& body, const std::string& more_style) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">"
      "<meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>\n<style>{}{}{}a{{color:var(--c0)}}</style></head>\n<body><main>\n{}"
      "</main></body></html>\n",
      escape_html(title), chart_style(), style, more_style, body);
}

std::string report_page(const Results& results, const ReportFacts& facts, const Pictures& pictures) {
  std::set<std::pair<int, int>> shapes;
  std::int64_t most = 0;
  std::size_t done = 0;
  for (const auto& r : results.rows) {
    shapes.insert({r.summary.n_layers, r.summary.d_model});
    most = std::max(most, r.run->parameters.total());
    done += r.summary.status == Status::finished || r.summary.status == Status::diverged;
  }
  const auto plural = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  const auto& first = *results.rows.front().run;

  std::string b;
  b += fmt::format("<h1>Depth against width: {} at {}</h1>\n",
                   plural(results.designs.size(), "residual design"), plural(shapes.size(), "shape"));
  b += fmt::format("<p class=\"soft\">Models of up to {} parameters, {} steps of {} tokens. {}</p>\n",
                   count_text(double(most)), first.steps, first.config.train.batch_tokens,
                   escape_html(facts.described));
  if (done < results.rows.size())
    b += fmt::format("<p class=\"warning\">{} of {} runs are done; the same command goes on.</p>\n", done,
                     results.rows.size());
  for (const auto& w : results.warnings) b += fmt::format("<p class=\"warning\">{}</p>\n", escape_html(w));
  if (!results.best.empty()) {
    b += cards(results);
    b += "<h2>Validation loss against aspect ratio</h2>\n";
    b += fmt::format(
        "<p class=\"soft\">Each design at its best learning rate; lower is better. {}A model that knows byte "
        "frequencies and nothing else has the unigram entropy of the held-out part, "
        "{:.4f} nats.</p>\n<figure class=\"wide\">{}</figure>\n{}\n",
        std::any_of(results.best.begin(), results.best.end(), [](const Point& p) { return p.runs > 1; })
            ? "Points are means over seeds, bars their range. "
            : "",
        facts.unigram_entropy, pictures.aspect, loss_table(results));
    b += "<h2>Loss curves</h2>\n<p class=\"soft\">Training loss, a running mean over one fortieth of the "
         "run; the dashed line is the unigram entropy. ";
    for (const auto& design : results.designs) b += dot(results, design) + "&ensp;";
    b += "</p>\n<div class=\"panels\">";
    for (const auto& [name, picture] : pictures.curves)
      b += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", escape_html(name), picture);
    b += "</div>\n";
    if (!pictures.rates.empty())
      b += fmt::format("<h2>Learning rates</h2>\n<figure class=\"wide\">{}</figure>\n", pictures.rates);
  }
  b += depth_sections(results);
  if (!pictures.published.empty()) {
    b += "<h2>Reported elsewhere</h2>\n<p class=\"soft\">Losses of 400M models as their authors report them (arXiv 2609.32534, figure 2; other data, size "
         "and tokenizer). Nothing here was measured by this program; compare the order of the lines, not their height.</p>\n<p class=\"small\">";
    for (const auto& p : published_losses)
      b += fmt::format("<span class=\"dot c{}\"></span>{}&ensp;", published_color(results.designs, p.design) % chart_colors, p.design);
    b += fmt::format("</p>\n<figure class=\"wide\">{}</figure>\n", pictures.published);
  }
  if (!pictures.costs.empty()) {
    b += "<h2>Cost against aspect ratio</h2>\n<p class=\"soft\">Counted by running the models without data, "
         "not "
         "measured: one sequence, the memory of one micro-batch. ";
    for (const auto& design : results.designs) b += dot(results, design) + "&ensp;";
    b += "</p>\n<div class=\"panels\">";
    for (const auto& [name, picture] : pictures.costs)
      b += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", escape_html(name), picture);
    b += "</div>\n";
  }
  b += fmt::format(
      "<h2>All runs</h2>\n<p class=\"soft\">Bold: the best rate of the design. Train loss is the mean over "
      "the last 5 % of the steps; validation is {}. Also as "
      "<a href=\"results.csv\">results.csv</a> and <a href=\"results.json\">results.json</a>.</p>\n{}\n",
      facts.by_document ? "by document, the true mean a predicted token" : "over packed windows", run_table(results));
  b += "<h2>Do it again</h2>\n<p class=\"soft\">The same seeds give the same bits on the same machine, with "
       "any number of threads.</p>\n" +
       reproduce(results);
  return page_of("DepthBench: depth against width", b);
}

}  // namespace depthbench::app
