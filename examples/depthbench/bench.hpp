#pragma once
#include <string>
#include <vector>

namespace depthbench::app {

struct BenchOptions {
  std::string what = "step";                                  // gemm | rows | step | account | memory
  std::vector<std::string> designs = {"pre_ln", "hc", "attn_res"};
  int d_model = 256, n_layers = 8, n_heads = 0, seq_len = 1024, batch = 1, vocab_size = 4096;  // heads 0: head size 64, or 32 below d 256
  int threads = 0, repeats = 5;
  std::string precision = "fp32";                             // as train.precision: fp32 | bf16 | bf16_pure
  bool recompute = false, json = false;
};
int bench(const BenchOptions& options);  // exit code

}  // namespace depthbench::app
