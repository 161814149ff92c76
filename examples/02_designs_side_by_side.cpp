// Three residual designs, one recipe: what the carry of each looks like, and how far each gets.
#include "depthbench/depthbench.hpp"

namespace db = depthbench;
using Cpu = db::Cpu;

int main() {
  std::string text;
  for (unsigned i = 1; text.size() < 40000; i = i * 1664525u + 1013904223u)
    text += i >> 30 == 0   ? "the whale. "
            : i >> 30 == 1 ? "a white ship "
            : i >> 30 == 2 ? "on the sea, "
                           : "and ";
  const db::Corpus corpus = db::corpus_from_text(text);
  const db::Split split = db::hold_out_fraction(corpus.documents(), 0.1);
  const db::TrainConfig recipe{.seq_len = 64, .batch_tokens = 512, .steps = 100, .lr = 5e-3};
  const db::ModelConfig shape{.d_model = 32, .n_layers = 3, .n_heads = 2, .n_kv_heads = 2, .ffn_hidden = 96};

  Cpu cpu;
  const auto show = [&](const char* name, std::unique_ptr<db::Residual<Cpu, float>> design) {
    db::Transformer<Cpu, float> model(cpu, shape, std::move(design));
    model.initialize(recipe.seed);  // the same matrices for all
    db::WindowSampler sampler(corpus, split.train, recipe.seq_len, recipe.data_seed);  // the same windows
    db::Trainer<Cpu, float> trainer(model, sampler, recipe);
    const double first = trainer.step().loss;
    while (!trainer.done()) trainer.step();
    const auto held_out = db::packed_validation(corpus, split.validation, recipe.seq_len);
    fmt::print("{:<9} {:>4} parameters of its own, loss {:.2f} -> {:.2f}\n", name,
               model.parameters().numel(db::Part::residual), first,
               db::evaluate(model, trainer.tape(), held_out, 8).mean());
  };
  show("pre_ln", std::make_unique<db::PreLn<Cpu, float>>());      // one stream
  show("hc", std::make_unique<db::Hc<Cpu, float>>());             // four streams, mixed by every token
  show("attn_res", std::make_unique<db::AttnRes<Cpu, float>>());  // a list of all earlier outputs
  fmt::print("unigram entropy {:.2f}\n", db::unigram_entropy(corpus, split.validation));
}

// Expected output:
// pre_ln       0 parameters of its own, loss 5... -> 0...
// hc        1308 parameters of its own, loss 5... -> 0...
// attn_res   384 parameters of its own, loss 5... -> 0...
// unigram entropy 2...
