#include "svg.hpp"

#include <algorithm>
#include <cmath>

#include "depthbench/core/error.hpp"

namespace depthbench::app {
namespace {

// Told apart by people who see few colours as well (after Okabe and Ito 2008), lightened for dark pages.
constexpr const char* light[chart_colors] = {"#0b69b7", "#d1560a", "#0a8f6a", "#b8438f", "#a87900",
                                             "#2596be", "#6b4fa0", "#8a5a44", "#5f6b76", "#8f9a00"};
constexpr const char* dark[chart_colors] = {"#5aa9f0", "#ff8f4d", "#38c79b", "#e88cc4", "#e3b341",
                                            "#6fd0ee", "#ab90e8", "#c99a80", "#a3b0bb", "#cdd656"};

struct Frame {
  double left, top, right, bottom;
};

double place(const ChartAxis& axis, double v, double from, double to) {
  const auto f = [&](double a) { return axis.logarithmic ? std::log(a) : a; };
  const double span = f(axis.high) - f(axis.low);
  return from + (to - from) * (span > 0 ? (f(v) - f(axis.low)) / span : 0.5);
}

std::vector<double> chosen_ticks(const ChartAxis& axis) {
  if (!axis.ticks.empty()) return axis.ticks;
  const double rough = (axis.high - axis.low) / 6, unit = std::pow(10, std::floor(std::log10(rough)));
  const double step = unit * (rough < 1.5 * unit ? 1 : rough < 3.5 * unit ? 2 : rough < 7.5 * unit ? 5 : 10);
  std::vector<double> ticks;
  for (double t = std::ceil(axis.low / step) * step; t <= axis.high + 1e-9 * step; t += step)
    ticks.push_back(std::fabs(t) < 1e-9 * step ? 0 : t);
  return ticks;
}

std::string marker(int color, double x, double y, const std::string& title) {
  const std::string inside = title.empty() ? "" : fmt::format("<title>{}</title>", escape_html(title));
  switch (color % 4) {
    case 0:
      return fmt::format("<circle class=\"m c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\">{}</circle>", color, x,
                         y, inside);
    case 1:
      return fmt::format("<rect class=\"m c{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"9\" height=\"9\">{}</rect>",
                         color, x - 4.5, y - 4.5, inside);
    case 2:
      return fmt::format("<path class=\"m c{}\" d=\"M{:.1f} {:.1f}l6 10h-12z\">{}</path>", color, x, y - 6,
                         inside);
    default:
      return fmt::format("<path class=\"m c{}\" d=\"M{:.1f} {:.1f}l6 6l-6 6l-6 -6z\">{}</path>", color, x,
                         y - 6, inside);
  }
}

std::string axes(const Chart& c, const Frame& f) {
  std::string out;
  for (const double t : chosen_ticks(c.y)) {
    const double y = place(c.y, t, f.bottom, f.top);
    out += fmt::format(
        "<path class=\"grid\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{:.6g}</text>",
        f.left, y, f.right, f.left - 8, y + 4, t);
  }
  for (const double t : chosen_ticks(c.x)) {
    const double x = place(c.x, t, f.left, f.right);
    out += fmt::format(
        "<path class=\"axis\" d=\"M{:.1f} {:.1f}v5\"/><text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"middle\">{:.4g}</text>",
        x, f.bottom, x, f.bottom + 19, t);
  }
  out += fmt::format("<path class=\"axis\" d=\"M{:.1f} {:.1f}H{:.1f}\"/>", f.left, f.bottom, f.right);
  out += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                     (f.left + f.right) / 2, f.bottom + 40, escape_html(c.x.label));
  const double middle = (f.top + f.bottom) / 2;
  out += fmt::format(
      "<text class=\"label\" transform=\"translate(15 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
      middle, escape_html(c.y.label));
  return out;
}

std::string lines(const Chart& c, const ChartSeries& s, const Frame& f) {
  std::string path, bars, marks;
  for (const auto& p : s.points) {
    const double x = place(c.x, p.x, f.left, f.right),
                 y = place(c.y, std::clamp(p.y, c.y.low, c.y.high), f.bottom, f.top);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    if (p.high > p.low)
      bars += fmt::format("<path class=\"bar c{}\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>", s.color, x,
                          place(c.y, p.low, f.bottom, f.top), place(c.y, p.high, f.bottom, f.top));
    if (s.markers) marks += marker(s.color, x, y, p.title);
  }
  return fmt::format("<path class=\"line{} c{}\" d=\"{}\"><title>{}</title></path>{}{}",
                     s.markers ? "" : " thin", s.color, path, escape_html(s.name), bars, marks);
}

// Where the names of the series stand, in as many lines as they need.
constexpr double chart_left = 66;
std::vector<ChartPoint> key_places(const Chart& c) {
  std::vector<ChartPoint> places;
  double x = chart_left, y = 15;
  if (c.legend)
    for (const auto& s : c.series) {
      const double width = 44 + 8.2 * double(s.name.size());
      if (x > chart_left && x + width > c.width) {
        x = chart_left;
        y += 22;
      }
      places.push_back({x, y});
      x += width;
    }
  return places;
}

}  // namespace

std::string escape_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

ChartAxis fitted_axis(std::string label, double low, double high, double room) {
  const double pad = high > low ? (high - low) * room : std::max(std::fabs(low) * 0.01, 1e-3);
  return {std::move(label), low - pad, high + pad, false, {}};
}

std::string chart_svg(const Chart& c) {
  const auto keys = key_places(c);
  const Frame f{chart_left, keys.empty() ? 14.0 : keys.back().y + 23, c.width - 18.0, c.height - 52.0};
  std::string out = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
                                c.width, c.height, escape_html(c.title));
  out += axes(c, f);
  if (c.rule > c.y.low && c.rule < c.y.high) {
    const double y = place(c.y, c.rule, f.bottom, f.top);
    out += fmt::format(
        "<path class=\"rule\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>",
        f.left, y, f.right, f.right, y - 6, escape_html(c.rule_label));
  }
  for (const auto& s : c.series) out += lines(c, s, f);
  for (std::size_t i = 0; i < keys.size(); ++i)
    out += marker(c.series[i].color, keys[i].x + 6, keys[i].y, "") +
           fmt::format("<text class=\"key\" x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", keys[i].x + 18, keys[i].y + 5,
                       escape_html(c.series[i].name));
  return out + "</svg>";
}

std::string chart_style() {
  std::string colors_light, colors_dark, uses;
  for (int i = 0; i < chart_colors; ++i) {
    colors_light += fmt::format("--c{}:{};", i, light[i]);
    colors_dark += fmt::format("--c{}:{};", i, dark[i]);
    uses += fmt::format(".chart .c{0},.dot.c{0}{{stroke:var(--c{0});color:var(--c{0})}}", i);
  }
  return ":root{--paper:#fcfcfb;--ink:#1c2126;--soft:#5b6670;--faint:#e3e6e8;" + colors_light +
         "}\n"
         "@media "
         "(prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e7eaec;--soft:#9aa5ae;--faint:#2b3136;" +
         colors_dark +
         "}}\n"
         ".chart{display:block;width:100%;height:auto;font:13px system-ui,sans-serif}.chart "
         "text{fill:var(--soft)}"
         ".chart .key{fill:var(--ink);font-size:14px}.chart .label{fill:var(--ink)}"
         ".chart .grid{stroke:var(--faint);fill:none}.chart .axis{stroke:var(--soft);fill:none}"
         ".chart .rule{stroke:var(--soft);stroke-dasharray:5 4;fill:none}"
         ".chart .line,.chart .bar{fill:none;stroke-width:2.5;stroke-linejoin:round}.chart "
         ".thin{stroke-width:1.7}"
         ".chart .bar{stroke-width:1.5}.chart "
         ".m{fill:currentColor;stroke:var(--paper)!important;stroke-width:1.5}\n" +
         uses + "\n";
}

std::string chart_svg_file(const Chart& c) {
  std::string svg = chart_svg(c);
  svg.insert(4, " xmlns=\"http://www.w3.org/2000/svg\"");
  svg.insert(svg.find('>') + 1,
             fmt::format("<style>{}</style><rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>",
                         chart_style()));
  return svg + "\n";
}

}  // namespace depthbench::app
