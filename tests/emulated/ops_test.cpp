// Every op on emulated blocks of threads against the CPU's own way of running it, by itself: what a whole model hides, or leaves out.
#include "depthbench/backend/emulated.hpp"
#include "tests/catch.hpp"
#include "tests/emulated/every_op.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("emulated: every op agrees with the serial team, outputs and gradients", "[emulated]") {
  for (const auto& [d, tokens] : {std::pair{10, 7}, {70, 37}}) {
    std::vector<std::pair<std::string, std::vector<double>>> needs;
    Cpu cpu(1);
    every_op<double>(cpu, d, tokens, [&](const std::string& name, const std::vector<double>& r) { needs.emplace_back(name, r); });
    CHECK(needs.size() > 40);
    EmulatedDevice<> emulated(Schedule::shuffled);
    std::size_t i = 0;
    every_op<double>(emulated, d, tokens, [&](const std::string& name, const std::vector<double>& has) {
      CAPTURE(d, tokens, name);
      REQUIRE(needs.at(i).first == name);
      REQUIRE(has.size() == needs[i].second.size());
      double worst = 0, largest = 0;
      for (std::size_t j = 0; j < has.size(); ++j) {
        const double e = std::fabs(has[j] - needs[i].second[j]);
        if (!(e <= worst)) worst = std::isnan(e) ? INFINITY : e;
        largest = std::max(largest, std::fabs(needs[i].second[j]));
      }
      CHECK(worst < 1e-12 * largest);
      CHECK(largest > 0);
      ++i;
    });
    CHECK(i == needs.size());
  }
}
