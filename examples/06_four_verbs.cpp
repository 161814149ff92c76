// A residual design is four verbs around every sublayer: open, read, write, close. What flows between them is the carry,
// and the designs differ in nothing else: one stream, some streams, or a list of everything so far. At initialisation these
// three compute the same: HC reads out the sum of its two streams, AttnRes the mean of its five sources.
#include "depthbench/backend/cpu.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/hc.hpp"
#include "depthbench/residual/pre_ln.hpp"

namespace db = depthbench;

// A Transformer without attention and FFN: 2 blocks, so 4 sublayers, each a matrix. This loop is all there is.
void show(const char* name, std::unique_ptr<db::Residual<db::Cpu, double>> design) {
  constexpr int tokens = 3, d = 8, sublayers = 4;
  db::Cpu cpu;
  db::Parameters<db::Cpu, double> parameters(cpu);
  auto& embedding = parameters.declare("x", {tokens, d}, db::Init::truncated_normal(1));
  std::vector<db::Parameter<double>*> matrix;
  for (int k = 0; k < sublayers; ++k)
    matrix.push_back(&parameters.declare(db::sublayer_name(k), {d, d}, db::Init::truncated_normal(0.3)));
  const auto before = parameters.numel();
  design->declare(parameters, {d, sublayers, 1e-6, d});
  parameters.allocate(0);

  db::Tape<db::Cpu, double> tape(cpu);
  fmt::print("{}: {} parameters of its own\n", name, parameters.numel() - before);
  auto carry = design->open(tape.use(embedding));                   // the embedding becomes the carry
  for (int k = 0; k < sublayers; ++k) {
    const auto u = design->read(carry, k);                          // (3, 8)   what sublayer k sees
    const auto y = db::linear(u, tape.use(*matrix[k]));             // (3, 8)   what it says
    design->write(carry, y, k);                                     //          and where that goes
    fmt::print("  after {:<22}", db::sublayer_name(k));
    for (const auto& value : carry.values) if (value.rows() == tokens && value.cols() >= d) fmt::print(" {}", value.shape().text());
    fmt::print("\n");
  }
  const auto out = design->close(carry);                            // (3, 8)   what the head reads
  double square = 0;
  for (const double v : out.values()) square += v * v;
  fmt::print("  read-out {}, rms {:.3f}\n", out.shape().text(), std::sqrt(square / double(out.numel())));
}

int main() {
  show("pre_ln", std::make_unique<db::PreLn<db::Cpu, double>>());
  show("hc", std::make_unique<db::Hc<db::Cpu, double>>(db::DesignOptions{{"n_streams", 2}}));
  show("attn_res", std::make_unique<db::AttnRes<db::Cpu, double>>());
}

// Expected output:
// pre_ln: 32 parameters of its own
//   after blocks.0.attention     (3, 8)
//   after blocks.0.feed_forward  (3, 8)
//   after blocks.1.attention     (3, 8)
//   after blocks.1.feed_forward  (3, 8)
//   read-out (3, 8), rms 1.845
// hc: 200 parameters of its own
//   after blocks.0.attention     (3, 16)
//   after blocks.0.feed_forward  (3, 16)
//   after blocks.1.attention     (3, 16)
//   after blocks.1.feed_forward  (3, 16)
//   read-out (3, 8), rms 3.689
// attn_res: 96 parameters of its own
//   after blocks.0.attention     (3, 8) (3, 8)
//   after blocks.0.feed_forward  (3, 8) (3, 8) (3, 8)
//   after blocks.1.attention     (3, 8) (3, 8) (3, 8) (3, 8)
//   after blocks.1.feed_forward  (3, 8) (3, 8) (3, 8) (3, 8) (3, 8)
//   read-out (3, 8), rms 0.369
