// A matrix as a picture: SVG text for a page. Dark is low, light is high; cells without a number stay empty.
#pragma once
#include <string>
#include <vector>

namespace depthbench::app {

struct HeatMap {
  std::string title;            // for screen readers
  int rows = 0, cols = 0;
  std::vector<double> values;   // row-major, row 0 at the top
  double low = 0, high = 1;     // the scale; what is beyond takes the last colour
  std::string x_label, y_label;
};
std::string heatmap_svg(const HeatMap& map);
// The scale as a bar with its two ends.
std::string heatmap_key(double low, double high, const std::string& label);
// What lies below the share of the defined numbers, e.g. 0.99.
double quantile(std::vector<double> values, double share);

}  // namespace depthbench::app
