// Needs a GPU; scripts/gpu_check builds and runs it. The ten designs on the GPU against the CPU: a whole step's loss, gradients
// and parameters.
//   agreement [DESIGN...]     one line a comparison; exit code 1 if any is too far off, 77 without a GPU
//   double    limit 1e-9: the same sums in another order
//   float     against double on the CPU; limit: ten times the error of the CPU's own float, or 1e-5 (fast exp, tanh and reciprocal)
//   bf16      products of rounded inputs, on the GPU those of attention too, against double; limit: twice the error of the CPU's bf16
//   again     the same step twice in float: the same bits
//   graph     training with its steps captured in a CUDA graph and replayed: the same bits as without
#include <cstdio>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/backend/cuda.cuh"
#include "tests/emulated/captured_training.hpp"
#include "tests/emulated/whole_step.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

int failures = 0;
void report(const std::string& design, const char* name, const char* kind, double error, double limit) {
  const bool good = error <= limit;
  failures += !good;
  fmt::print("{:<16} {:<8} {:<7} error {:9.2e}  limit {:9.2e}  {}\n", design, name, kind, error, limit, good ? "ok" : "FAILED");
  std::fflush(stdout);
}

void compare(CudaDevice& gpu, const std::string& design, const char* name, const StepCase& c) {
  Cpu cpu;
  const WholeStep needs = whole_step<double>(cpu, c, design), own = whole_step<float>(cpu, c, design);
  report(design, name, "double", relative_error(whole_step<double>(gpu, c, design), needs), 1e-9);
  const WholeStep once = whole_step<float>(gpu, c, design), again = whole_step<float>(gpu, c, design);
  report(design, name, "float", relative_error(once, needs), std::max(1e-5, 10 * relative_error(own, needs)));
  report(design, name, "again", relative_error(again, once), 0);
  cpu.set_products(Products::bf16);
  gpu.set_products(Products::bf16);
  const WholeStep rounded = whole_step<float>(cpu, c, design);
  report(design, name, "bf16", relative_error(whole_step<float>(gpu, c, design), needs), 2 * relative_error(rounded, needs));
  gpu.set_products(Products::fp32);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CudaDevice gpu(0);
    fmt::print("{}\n", gpu.properties().name);
    std::vector<std::string> designs(argv + 1, argv + argc);
    if (designs.empty()) designs = Designs<CudaDevice, float>().list();
    for (const auto& design : designs) {  // rows of whole 16 bytes; otherwise nothing is a round number
      const Trained plain = captured_training<float>(gpu, design, false), captured = captured_training<float>(gpu, design, true);
      report(design, "tiny", "graph", captured == plain && captured.untouched ? 0 : 1, 0);
      compare(gpu, design, "small", {{41, 24, 2, 3, 1, 20}, 2, 37});
      compare(gpu, design, "larger", {{300, 192, 3, 3, 3, 512}, 2, 130});
    }
    fmt::print("{} failed\n", failures);
    return failures > 0;
  } catch (const cuda_error& e) {
    fmt::print("{}\n", e.what());
    return 77;
  }
}
