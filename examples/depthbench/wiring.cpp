#include "wiring.hpp"

#include <array>
#include <vector>

#include "depthbench/core/error.hpp"
#include "svg.hpp"

namespace depthbench::app {
namespace {

struct Wiring {
  std::string design;
  int streams;                       // 0: a list of sources
  std::vector<const char*> branch;   // boxes on the way, from below
  std::vector<const char*> stream;   // boxes on the stream: the first before the sum, the second after it; "" is none
  const char* reading;               // what happens where the branch starts
};

const std::vector<Wiring>& wirings() {
  static const std::vector<Wiring> list{{"pre_ln", 1, {"N", "S"}, {"", ""}, ""},
                                        {"sandwich_ln", 1, {"N", "S", "N'"}, {"", ""}, ""},
                                        {"lns", 1, {"N", "1/√i", "S"}, {"", ""}, ""},
                                        {"deepnorm", 1, {"S"}, {"α", "LN"}, ""},
                                        {"keel", 1, {"N", "S"}, {"2L", "N'"}, ""},
                                        {"hc", 4, {"N", "S"}, {"A", ""}, "read"},
                                        {"mhc", 4, {"N", "S"}, {"H", ""}, "read"},
                                        {"attn_res", 0, {"N", "S"}, {"", ""}, "softmax"},
                                        {"block_attn_res", 0, {"N", "S"}, {"Σ", ""}, "softmax"},
                                        {"moda", 1, {"N", "S"}, {"", ""}, "slots"}};
  return list;
}

std::string box(double x, double y, const std::string& text, double width = 40) {
  return fmt::format("<rect class=\"wire-box\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"24\" rx=\"4\"/>"
                     "<text class=\"wire-text\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
                     x - width / 2, y - 12, width, x, y + 4.5, escape_html(text));
}
std::string path(const std::string& d) { return "<path class=\"wire\" d=\"" + d + "\"/>"; }
std::string arrow(double x, double y) { return path(fmt::format("M{0:.0f} {1:.0f}l-4 7m4 -7l4 7", x, y)); }

}  // namespace

std::string wiring_svg(const std::string& design) {
  for (const auto& w : wirings()) {
    if (w.design != design) continue;
    constexpr double left = 60, right = 170, low = 232, sum = 62, top = 12;
    std::string out = fmt::format("<svg class=\"chart\" viewBox=\"0 0 240 250\" role=\"img\" aria-label=\"wiring of {}\">", escape_html(design));
    const double start = 204, step = (start - sum - 20) / double(w.branch.size() + 1);
    if (w.streams > 0) {
      const double spread = w.streams > 1 ? 12 : 0;
      for (int s = 0; s < w.streams; ++s) {
        const double x = left + (s - (w.streams - 1) / 2.0) * spread;
        out += path(fmt::format("M{0:.1f} {1:.0f}V{2:.0f}", x, low, top)) + arrow(x, top);
      }
      const double edge = left + (w.streams - 1) / 2.0 * spread;
      out += path(fmt::format("M{0:.0f} {1:.0f}H{2:.0f}V{3:.0f}H{4:.0f}", edge, start, right, sum, edge));
      if (*w.stream[0]) out += box(left, 130, w.stream[0], w.streams > 1 ? 60 : 34);
      out += w.streams == 1 ? fmt::format("<circle class=\"wire-box\" cx=\"{0:.0f}\" cy=\"{1:.0f}\" r=\"9\"/>", left, sum) +
                                  path(fmt::format("M{0:.0f} {1:.0f}v10m-5 -5h10", left, sum - 5))
                            : box(left, sum, "write", 60);
      if (w.streams > 1) out += box(left, start, "read", 60);
      if (*w.stream[1]) out += box(left, 34, w.stream[1], 34);
      if (std::string(w.reading) == "slots") {
        for (int i = 0; i < 3; ++i) out += fmt::format("<circle class=\"wire-box\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", 222, 150 - 14 * i);
        out += path("M218 136H190") + fmt::format("<text class=\"wire-text\" x=\"206\" y=\"172\" text-anchor=\"middle\">slots</text>");
      }
    } else {  // sources below, the newest on top
      for (int i = 0; i < 4; ++i) {
        out += fmt::format("<circle class=\"wire-box\" cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"6\"/>", left, low - 8 - 22.0 * i);
        out += path(fmt::format("M{:.0f} {:.0f}L{:.0f} {:.0f}", left + 6, low - 8 - 22.0 * i, right - 32, start));
      }
      out += box(right, start, w.reading, 66) + path(fmt::format("M{0:.0f} {1:.0f}V{2:.0f}H{3:.0f}", right, start - 12, sum, left + 6));
      out += fmt::format("<circle class=\"wire-box\" cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"6\"/>", left, sum);
      if (*w.stream[0]) out += box(left, sum + 36, w.stream[0], 30) + path(fmt::format("M{0:.0f} {1:.0f}V{2:.0f}", left, sum + 24, sum + 6));
    }
    for (std::size_t i = 0; i < w.branch.size(); ++i) out += box(right, start - step * double(i + 1) - (w.streams > 0 ? 0 : 6), w.branch[i], 46);
    return out + "</svg>";
  }
  return "";
}

}  // namespace depthbench::app
