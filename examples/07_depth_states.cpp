// Looking inside: the depth states z_0 .. z_L of a model, here the length of the stream and how much each block turns it.
// A block whose output hardly turns a long stream adds depth and little else: the question behind this project.
#include "depthbench/backend/cpu.hpp"
#include "depthbench/model/transformer.hpp"
#include "depthbench/residual/deepnorm.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "depthbench/residual/sandwich_ln.hpp"

namespace db = depthbench;
using Cpu = db::Cpu;

void show(const char* name, std::unique_ptr<db::Residual<Cpu, float>> design) {
  constexpr int tokens = 64, d = 64, layers = 16;
  Cpu cpu;
  db::Transformer<Cpu, float> model(
      cpu, {.vocab_size = 100, .d_model = d, .n_layers = layers, .n_heads = 4, .n_kv_heads = 4, .ffn_hidden = 176, .init_std = 0.1},
      std::move(design));
  model.initialize(0);
  std::vector<std::int32_t> text;
  for (int t = 0; t < tokens; ++t) text.push_back(t * t % 100);

  std::vector<float> last;
  fmt::print("{:<12}", name);
  db::Tape<Cpu, float> tape(cpu);
  tape.no_grad([&] {  // nothing is recorded, and each state is gone when the next one comes
    return std::vector{model.logits(tape, text, 1, [&](int l, db::Var<Cpu, float> z) {
      const std::vector<float> now(z.values().begin(), z.values().end());  // (64, 64)
      double square = 0, dot = 0, before = 0;
      for (std::size_t i = 0; i < now.size(); ++i) {
        square += double(now[i]) * now[i];
        if (l > 0) dot += double(now[i]) * last[i], before += double(last[i]) * last[i];
      }
      if (l > 0 && (l <= 2 || l % 8 == 0))
        fmt::print("  z_{:<2} rms {:5.2f} cos {:.2f}", l, std::sqrt(square / double(now.size())), dot / std::sqrt(square * before));
      last = now;
    })};
  });
  tape.clear();
  fmt::print("\n");
}

int main() {
  show("pre_ln", std::make_unique<db::PreLn<Cpu, float>>());
  show("sandwich_ln", std::make_unique<db::SandwichLn<Cpu, float>>());
  show("deepnorm", std::make_unique<db::DeepNorm<Cpu, float>>());
}

// Expected output:
// pre_ln        z_1  rms  0.4... cos 0...  z_2  rms  0.8... cos 0...  z_8  rms  1.8... cos 0.9...  z_16 rms  2.5... cos 0.9...
// sandwich_ln   z_1  rms  1.4... cos 0...  z_2  rms  ... cos 0...  z_8  rms  4.0... cos 0.9...  z_16 rms  5.1... cos 0.9...
// deepnorm      z_1  rms  1.0... cos ...  z_2  rms  1.0... cos ...  z_8  rms  1.0... cos ...  z_16 rms  1.0... cos ...
