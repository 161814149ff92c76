// Needs a GPU; scripts/gpu_check builds and runs it. The golden cases on the GPU: logits, losses of three steps, every gradient.
//   golden [NAME...]     one line a case and arithmetic, with the worst result as a share of what it may be; exit code 1 if one is
//                        beyond, 77 without a GPU
//   double   the golden README's limits       float, tf32, bf16   rounding (tests/model/golden_result.hpp)
// Cases whose rows are no whole 16 bytes cannot run on a GPU and are named.
#include <cstdio>

#include "depthbench/backend/cuda.cuh"
#include "tests/model/golden_result.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

int failures = 0;
void report(const std::string& name, const char* arithmetic, const Share& share) {
  const bool good = share.value < 1;
  failures += !good;
  fmt::print("{:<26} {:<7} {:6.3f} of what {} may be off  {}\n", name, arithmetic, share.value, share.what, good ? "ok" : "FAILED");
  std::fflush(stdout);
}

void check_case(CudaDevice& gpu, const std::string& name) {
  {
    GoldenCase<double, CudaDevice> c(gpu, name);
    const auto needs = golden_needs(c);
    report(name, "double", worst_share(golden_result(c), needs, allowed_float64(c, needs)));
  }
  const auto model = GoldenText(golden_folder() / name / "case.json").model;
  if (model.d_model % 4 != 0) {
    fmt::print("{:<26} d_model {} is no multiple of 4: not in float\n", name, model.d_model);
    return;
  }
  const Sensitivity sensitive = sensitivity(name);
  const auto in = [&](const char* arithmetic, Products products, bool tf32, const Arithmetic& of) {
    gpu.set_products(products);
    gpu.allow_tf32(tf32);
    GoldenCase<float, CudaDevice> c(gpu, name);
    report(name, arithmetic, worst_share(golden_result(c), golden_needs(c), allowed_rounding(sensitive, of)));
    gpu.set_products(Products::fp32);
    gpu.allow_tf32(false);
  };
  Arithmetic fast = in_float(model);
  fast.u *= 2;  // exp, tanh and reciprocals of a GPU: 2 units in the last place
  in("float", Products::fp32, false, fast);
  in("tf32", Products::fp32, true, {0x1p-11, 2});
  in("bf16", Products::bf16, false, in_bf16(true));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CudaDevice gpu(0);
    std::vector<std::string> names(argv + 1, argv + argc);
    if (names.empty()) names = golden_cases();
    for (const auto& name : names) {
      if (GoldenText(golden_folder() / name / "case.json").model.d_model % 2 != 0) {
        fmt::print("{:<26} an odd width: not on a GPU\n", name);
        continue;
      }
      check_case(gpu, name);
    }
    fmt::print("{} failed\n", failures);
    return failures > 0;
  } catch (const cuda_error& e) {
    fmt::print("{}\n", e.what());
    return 77;
  }
}
