// Gradients: values on a tape, read backwards. Two layers learn exclusive or, which one cannot.
#include "depthbench/backend/cpu.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/op/linear_cross_entropy.hpp"
#include "depthbench/op/swiglu.hpp"
#include "depthbench/train/adamw.hpp"

namespace db = depthbench;

int main() {
  const double points[] = {1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1};  // (4, 3): a one, then the two bits
  const std::int32_t answers[] = {0, 1, 1, 0};

  db::Cpu cpu;
  db::Parameters<db::Cpu, double> parameters(cpu);  // named, initialised by seed and name, stored side by side
  auto& w1 = parameters.declare("w1", {4, 3}, db::Init::truncated_normal(1));
  auto& w3 = parameters.declare("w3", {4, 3}, db::Init::truncated_normal(1));
  auto& w_out = parameters.declare("w_out", {2, 4}, db::Init::truncated_normal(1));
  parameters.allocate(7);

  db::Tape<db::Cpu, double> tape(cpu);
  const auto loss = [&] {  // every op computes at once and leaves one closure on the tape for the way back
    const auto x = tape.constant(points, {4, 3});
    const auto h = db::swiglu(db::linear(x, tape.use(w1)), db::linear(x, tape.use(w3)));  // (4, 4)
    return db::linear_cross_entropy(h, tape.use(w_out), answers, 4.0);                    // ()
  };

  tape.backward(loss());
  const double by_tape = w1.grads()[1];
  const auto value_at = [&](double w) {  // the same by a difference: gradcheck does this for all parameters
    const double kept = std::exchange(w1.value[1], w), value = *loss().value();
    w1.value[1] = kept;
    tape.clear();
    return value;
  };
  const double w = w1.value[1], by_difference = (value_at(w + 1e-5) - value_at(w - 1e-5)) / 2e-5;
  fmt::print("d loss / d w1[1]: {:.6f} by the tape, they agree: {}\n", by_tape, std::fabs(by_tape - by_difference) < 1e-8);
  parameters.clear_grads();

  db::Adamw<db::Cpu, double> adamw(parameters, {.weight_decay = 0});
  for (int step = 1; step <= 200; ++step) {
    const auto l = loss();
    if (step == 1 || step % 100 == 0) fmt::print("step {:>3}  loss {:.3f}\n", step, *l.value());
    tape.backward(l);   // gradients add up in the parameters
    adamw.step(0.05);   // moves them and clears the gradients
  }
}

// Expected output:
// d loss / d w1[1]: ... by the tape, they agree: true
// step   1  loss 0...
// step 100  loss 0.0...
// step 200  loss 0.0...
