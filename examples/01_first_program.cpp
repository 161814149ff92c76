// A first program: a small Transformer learns one sentence.
#include "depthbench/depthbench.hpp"

namespace db = depthbench;

int main() {
  std::string text;
  while (text.size() < 20000) text += "Call me Ishmael. Some years ago, never mind how long precisely, ";
  const db::Corpus corpus = db::corpus_from_text(text);  // bytes are the tokens
  db::Cpu cpu;
  db::Transformer<db::Cpu, float> model(
      cpu, {.d_model = 32, .n_layers = 2, .n_heads = 2, .n_kv_heads = 2, .ffn_hidden = 96},
      std::make_unique<db::PreLn<db::Cpu, float>>());  // or Hc, AttnRes, ...
  model.initialize(0);
  const db::TrainConfig recipe{.seq_len = 64, .batch_tokens = 512, .steps = 120, .lr = 1e-2};
  db::WindowSampler sampler(corpus, corpus.documents(), recipe.seq_len, recipe.data_seed);
  db::Trainer<db::Cpu, float> trainer(model, sampler, recipe);
  while (!trainer.done())
    if (const auto r = trainer.step(); r.step % 40 == 0 || r.step == 1)
      fmt::print("step {:>3}  loss {:.3f}\n", r.step, r.loss);
}

// Expected output:
// step   1  loss 5...
// step  40  loss ...
// step  80  loss 0...
// step 120  loss 0.0...
