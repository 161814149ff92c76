// The fair test: one budget of parameters, spent on width or on depth, and every learning rate tried for each. Only then is
// a design compared with another. (Here for seconds; the app's `sweep` does it for real.)
#include "depthbench/backend/cpu.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/split.hpp"
#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "depthbench/train/evaluate.hpp"
#include "depthbench/train/trainer.hpp"

namespace db = depthbench;
using Cpu = db::Cpu;

// A language of bracketed words: what closes depends on what was opened, so depth can be of use.
std::string text() {
  std::string s, open;
  const db::Rng rng(1);
  for (std::uint64_t i = 0; s.size() < 30000; ++i) {
    const bool opens = open.empty() || (open.size() < 6 && rng.below(i, 2) == 0);
    if (opens) open += "([{<"[rng.below(i + 1'000'000, 4)], s += open.back();
    else s += open.back() == '(' ? ')' : open.back() == '[' ? ']' : open.back() == '{' ? '}' : '>', open.pop_back();
  }
  return s;
}

template <template <class, class> class Design>
double loss_of(const db::Corpus& corpus, const db::ModelConfig& shape, double lr) {
  const db::TrainConfig recipe{.seq_len = 32, .batch_tokens = 512, .micro_batch = 16, .steps = 60, .lr = lr};
  const db::Split split = db::hold_out_fraction(corpus.documents(), 0.1);
  Cpu cpu;
  db::Transformer<Cpu, float> model(cpu, shape, std::make_unique<Design<Cpu, float>>());
  model.initialize(recipe.seed);
  db::WindowSampler windows(corpus, split.train, recipe.seq_len, recipe.data_seed);  // the same for all
  db::Trainer<Cpu, float> trainer(model, windows, recipe);
  while (!trainer.done()) trainer.step();
  return db::evaluate(model, trainer.tape(), db::packed_validation(corpus, split.validation, recipe.seq_len), 16).mean();
}

template <template <class, class> class Design> void row(const char* name, const db::Corpus& corpus) {
  for (const auto& [layers, d] : {std::pair{2, 48}, {8, 24}}) {  // 12 L d^2 = 55296 in the blocks of both
    const db::ModelConfig shape{.d_model = d, .n_layers = layers, .n_heads = 2, .n_kv_heads = 2, .ffn_hidden = 8 * d / 3};
    double best = 1e9, best_lr = 0;
    for (const double lr : {1e-2, 3e-2})
      if (const double loss = loss_of<Design>(corpus, shape, lr); loss < best) best = loss, best_lr = lr;
    fmt::print("{:<9} L = {}  d = {}  d/L = {:>4.1f}  best lr {:.3f}  held-out loss {:.2f}\n", name, layers, d, double(d) / layers,
               best_lr, best);
  }
}

int main() {
  const db::Corpus corpus = db::corpus_from_text(text());
  row<db::PreLn>("pre_ln", corpus);
  row<db::AttnRes>("attn_res", corpus);
}

// Expected output:
// pre_ln    L = 2  d = 48  d/L = 24.0  best lr 0...  held-out loss 1...
// pre_ln    L = 8  d = 24  d/L =  3.0  best lr 0...  held-out loss 1...
// attn_res  L = 2  d = 48  d/L = 24.0  best lr 0...  held-out loss 1...
// attn_res  L = 8  d = 24  d/L =  3.0  best lr 0...  held-out loss 1...
