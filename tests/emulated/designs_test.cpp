// Every kernel of every design on emulated blocks of threads, against the CPU's own way of running it: a whole model, its
// loss, every gradient and one optimizer step, in double, at widths that fill no register, warp or tile.
#include "depthbench/backend/emulated.hpp"
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/adamw.hpp"
#include "depthbench/model/transformer.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

using R = double;

struct Case {
  ModelConfig model;
  int batch, seq;
  Activations activations = Activations::keep;
};

// The loss, all gradients, the norm and all parameters after a step, from parameters that are alive everywhere.
template <class Device> std::vector<R> everything(Device& device, const Case& c, const std::string& design, const DesignOptions& options) {
  Transformer<Device, R> model(device, c.model, Designs<Device, R>().make(design, options));
  model.initialize(3);
  const Rng rng(1, 2);
  for (auto& p : model.parameters().list())
    for (std::size_t i = 0; i < p.values().size(); ++i) p.value[i] += 0.3 * rng.normal(p.offset + i);
  Tape<Device, R> tape(device);
  std::vector<std::int32_t> tokens(std::size_t(c.batch * c.seq)), targets(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = std::int32_t(i * i % std::size_t(c.model.vocab_size));
    targets[i] = i % 7 == 3 ? ignored_target : std::int32_t(i * 5 % std::size_t(c.model.vocab_size));
  }
  const auto loss = model.loss(tape, tokens, targets, c.batch, 50, c.activations);
  std::vector<R> all{device.read(loss.value())};
  tape.backward(loss);
  model.parameters().settle_grads();
  for (const auto& p : model.parameters().list()) all.insert(all.end(), p.grads().begin(), p.grads().end());
  Adamw<Device, R> adamw(model.parameters(), {});
  all.push_back(adamw.step(1e-2));
  for (const auto& p : model.parameters().list()) all.insert(all.end(), p.values().begin(), p.values().end());
  return all;
}

double difference(const Case& c, const std::string& design, const DesignOptions& options = {}, Schedule schedule = Schedule::forward) {
  Cpu cpu(1);
  EmulatedDevice<> emulated(schedule);
  const auto needs = everything(cpu, c, design, options), has = everything(emulated, c, design, options);
  CHECK(emulated.blocks_run() > 50);
  return error_of(has, needs);
}

DesignOptions with(const std::string& name, double value) {
  DesignOptions o;
  o.set(name, value);
  return o;
}

// vocabulary, width, blocks, heads, KV heads, hidden width of the FFN
const Case narrow{{37, 10, 2, 1, 1, 7}, 2, 9}, ragged{{41, 42, 2, 3, 1, 20}, 1, 37}, wide{{50, 132, 1, 6, 2, 36}, 1, 6};

}  // namespace

TEST_CASE("emulated: every design agrees with the serial team, forward and backward", "[emulated]") {
  for (const auto& design : Designs<Cpu, R>().list()) {
    CAPTURE(design);
    CHECK(difference(narrow, design, {}, Schedule::reverse) < 1e-11);
    CHECK(difference(ragged, design, {}, Schedule::shuffled) < 1e-11);
    CHECK(difference(wide, design) < 1e-11);
  }
}

TEST_CASE("emulated: other numbers of streams and sizes of groups, and recomputed blocks", "[emulated]") {
  for (const auto* design : {"hc", "mhc"})
    for (const int n : {1, 2, 3, 5}) {
      CAPTURE(design, n);
      CHECK(difference(narrow, design, with("n_streams", n)) < 1e-11);
    }
  CHECK(difference(narrow, "block_attn_res", with("block_size", 3)) < 1e-11);
  Case again = narrow;
  again.activations = Activations::recompute;
  for (const auto* design : {"pre_ln", "hc", "attn_res", "moda"}) CHECK(difference(again, design) < 1e-11);
}

TEST_CASE("emulated: attention over several tiles, with depth slots", "[emulated]") {
  const Case tall{{20, 8, 3, 4, 2, 6}, 1, 70}, heads{{20, 72, 2, 1, 1, 6}, 1, 33};  // h = 2 and 72: 4 and 32 channels a thread
  CHECK(difference(tall, "moda") < 1e-11);
  CHECK(difference(heads, "moda") < 1e-11);
}
