// Needs a GPU; scripts/gpu_check builds and runs it. Every op by itself on the GPU against the CPU, outputs and gradients.
//   ops    one line an op and arithmetic; exit code 1 if one is too far off, 77 without a GPU
//   double   limit 1e-12 of the largest number: the same sums in another order
//   float    against double on the CPU; limit: 8 sqrt(longest sum) units of roundoff (random and independent, 4 standard deviations,
//            fast exp, tanh and reciprocals of 2 units), of the largest number
#include <cstdio>
#include <map>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/backend/cuda.cuh"
#include "tests/emulated/every_op.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

int failures = 0;
void report(const std::string& name, int d, const char* kind, const std::vector<double>& has, const std::vector<double>& needs, double limit) {
  double worst = has.size() == needs.size() ? 0 : INFINITY, largest = 0;
  for (std::size_t j = 0; j < has.size() && j < needs.size(); ++j) {
    const double e = std::fabs(has[j] - needs[j]);
    if (!(e <= worst)) worst = std::isnan(e) ? INFINITY : e;
    largest = std::max(largest, std::fabs(needs[j]));
  }
  const bool good = worst <= limit * largest;
  failures += !good;
  fmt::print("{:<36} d {:<4} {:<7} error {:9.2e}  limit {:9.2e}  {}\n", name, d, kind, worst / largest, limit, good ? "ok" : "FAILED");
  std::fflush(stdout);
}

}  // namespace

int main() {
  try {
    CudaDevice gpu(0);
    for (const auto& [d, tokens] : {std::pair{12, 7}, {640, 150}}) {
      Cpu cpu;
      std::map<std::string, std::vector<double>> needs;
      every_op<double>(cpu, d, tokens, [&](const std::string& name, const std::vector<double>& r) { needs[name] = r; });
      every_op<double>(gpu, d, tokens, [&](const std::string& name, const std::vector<double>& r) { report(name, d, "double", r, needs.at(name), 1e-12); });
      const double limit = 8 * std::sqrt(4.0 * d * tokens) * 0x1p-24;
      every_op<float>(gpu, d, tokens, [&](const std::string& name, const std::vector<double>& r) { report(name, d, "float", r, needs.at(name), limit); });
    }
    fmt::print("{} failed\n", failures);
    return failures > 0;
  } catch (const cuda_error& e) {
    fmt::print("{}\n", e.what());
    return 77;
  }
}
