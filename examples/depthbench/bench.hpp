#pragma once
#include <string>
#include <vector>

namespace depthbench::app {

struct BenchOptions {
  std::string what = "step";                                  // gemm | rows | step | account
  std::vector<std::string> designs = {"pre_ln", "hc", "attn_res"};
  int d_model = 256, n_layers = 8, n_heads = 0, seq_len = 1024, batch = 1, vocab_size = 4096;  // heads 0: head size 64, or 32 below d 256
  int threads = 0, repeats = 5;
  bool recompute = false, bf16 = false, json = false;         // bf16: products of bfloat16 inputs
};
int bench(const BenchOptions& options);  // exit code

}  // namespace depthbench::app
