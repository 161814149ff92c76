#include "heatmap.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "depthbench/core/error.hpp"
#include "svg.hpp"

namespace depthbench::app {
namespace {

// Even steps of lightness, told apart without colour vision and in print: anchors on the line of matplotlib's viridis (CC0).
constexpr std::array<std::array<double, 3>, 6> anchors{
    {{68, 1, 84}, {65, 68, 135}, {42, 120, 142}, {34, 168, 132}, {122, 209, 81}, {253, 231, 37}}};

std::string color_at(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * double(anchors.size() - 1);
  const std::size_t i = std::min(std::size_t(at), anchors.size() - 2);
  const double f = at - double(i);
  const auto mix = [&](std::size_t c) { return int(std::lround(anchors[i][c] + f * (anchors[i + 1][c] - anchors[i][c]))); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2));
}

}  // namespace

std::string heatmap_svg(const HeatMap& m) {
  constexpr double left = 34, top = 6, right = 6, bottom = 34, size = 200;
  const double cell = size / std::max(m.rows, m.cols), width = cell * m.cols, height = cell * m.rows;
  std::string out = fmt::format("<svg class=\"chart heat\" viewBox=\"0 0 {:.1f} {:.1f}\" role=\"img\" aria-label=\"{}\">",
                                left + width + right, top + height + bottom, escape_html(m.title));
  const double span = m.high > m.low ? m.high - m.low : 1;
  for (int i = 0; i < m.rows; ++i) for (int j = 0; j < m.cols; ++j) {
    const double v = m.values[std::size_t(i * m.cols + j)];
    if (!std::isfinite(v)) continue;
    out += fmt::format("<path fill=\"{}\" d=\"M{:.2f} {:.2f}h{:.2f}v{:.2f}h-{:.2f}z\"><title>{}, {}: {:.4g}</title></path>",
                       color_at((v - m.low) / span), left + j * cell, top + i * cell, cell + 0.05, cell + 0.05, cell + 0.05, i, j, v);
  }
  const auto tick = [&](double x, double y, int n, const char* anchor) {
    out += fmt::format("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, n);
  };
  tick(left - 4, top + cell / 2 + 4, 0, "end");
  tick(left - 4, top + height - cell / 2 + 4, m.rows - 1, "end");
  tick(left + cell / 2, top + height + 14, 0, "middle");
  tick(left + width - cell / 2, top + height + 14, m.cols - 1, "middle");
  out += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>", left + width / 2, top + height + 29,
                     escape_html(m.x_label));
  out += fmt::format("<text class=\"label\" transform=\"translate(12 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>", top + height / 2,
                     escape_html(m.y_label));
  return out + "</svg>";
}

std::string heatmap_key(double low, double high, const std::string& label) {
  std::string out = fmt::format("<svg class=\"chart key-bar\" viewBox=\"0 0 300 34\" role=\"img\" aria-label=\"scale from {:.3g} to {:.3g}, {}\">", low, high,
                                escape_html(label));
  for (int i = 0; i < 60; ++i) out += fmt::format("<path fill=\"{}\" d=\"M{} 2h5.1v10h-5.1z\"/>", color_at(i / 59.0), i * 5);
  out += fmt::format("<text class=\"tick\" x=\"0\" y=\"27\">{:.3g}</text><text class=\"tick\" x=\"300\" y=\"27\" text-anchor=\"end\">{:.3g}</text>"
                     "<text class=\"label\" x=\"150\" y=\"27\" text-anchor=\"middle\">{}</text></svg>", low, high, escape_html(label));
  return out;
}

double quantile(std::vector<double> v, double share) {
  std::erase_if(v, [](double x) { return !std::isfinite(x); });
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, std::size_t(share * double(v.size())))];
}

}  // namespace depthbench::app
