#include "words.hpp"

#include <cmath>

#include "depthbench/core/error.hpp"

namespace depthbench::app {

std::string count_text(double n) {
  for (const auto& [unit, name] : {std::pair{1e9, "G"}, {1e6, "M"}, {1e3, "k"}})
    if (n >= unit * 0.9995)
      return fmt::format("{:.{}f}{}", n / unit, n < 9.995 * unit ? 2 : n < 99.95 * unit ? 1 : 0, name);
  return fmt::format("{:.0f}", n);
}

std::string bytes_text(double b) {
  const double mb = b / 1048576;
  return mb < 9.95    ? fmt::format("{:.1f} MB", mb)
         : mb < 10000 ? fmt::format("{:.0f} MB", mb)
                      : fmt::format("{:.1f} GB", mb / 1024);
}

std::string time_text(double s) {
  if (!(s >= 0) || s > 1e9) return "unknown";
  const auto t = std::int64_t(std::llround(s));
  if (t < 10) return fmt::format("{:.1f} s", s);
  if (t < 60) return fmt::format("{} s", t);
  if (t < 3600) return fmt::format("{} min {:02} s", t / 60, t % 60);
  return fmt::format("{} h {:02} min", t / 3600, t % 3600 / 60);
}

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "not a number";
}

}  // namespace depthbench::app
