// Line charts as SVG text: inline in a page (colours from its style sheet) or a file of its own.
#pragma once
#include <string>
#include <vector>

namespace depthbench::app {

struct ChartPoint {
  double x = 0, y = 0;
  double low = 0, high = 0;  // an error bar where they differ
  std::string title;         // shown by the pointer
};
struct ChartSeries {
  std::string name;
  int color = 0;  // one of chart_colors, also the marker's form
  std::vector<ChartPoint> points;
  bool markers = true;  // false: a plain curve
};
struct ChartAxis {
  std::string label;
  double low = 0, high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;  // none: chosen
};
struct Chart {
  std::string title;  // for screen readers
  int width = 720, height = 400;
  ChartAxis x, y;
  std::vector<ChartSeries> series;
  double rule = 0;  // a horizontal line, 0: none
  std::string rule_label;
  bool legend = true;
};

inline constexpr int chart_colors = 10;
std::string chart_svg(const Chart& chart);       // <svg class="chart">, needs chart_style() in the page
std::string chart_svg_file(const Chart& chart);  // complete, light and dark by itself
std::string chart_style();                       // the rules for charts, colours included

std::string escape_html(const std::string& text);  // also right for attributes
// Room above and below [low, high] for an axis.
ChartAxis fitted_axis(std::string label, double low, double high, double room = 0.08);

}  // namespace depthbench::app
