// Every kernel of every design on emulated blocks of threads, against the CPU's own way of running it: a whole model, its
// loss, every gradient and one optimizer step, in double, at widths that fill no register, warp or tile.
#include <map>

#include "depthbench/backend/emulated.hpp"
#include "tests/catch.hpp"
#include "tests/emulated/captured_training.hpp"
#include "tests/emulated/whole_step.hpp"
#include "tests/model/golden_result.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

using R = double;

using Case = StepCase;

double difference(const Case& c, const std::string& design, const DesignOptions& options = {}, Schedule schedule = Schedule::forward) {
  Cpu cpu(1);
  EmulatedDevice<> emulated(schedule);
  const auto needs = whole_step<R>(cpu, c, design, options), has = whole_step<R>(emulated, c, design, options);
  CHECK(emulated.blocks_run() > 50);
  return relative_error(has, needs);
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
#if !defined(__SANITIZE_ADDRESS__)  // which makes a fiber twenty times as dear
    CHECK(difference(ragged, design, {}, Schedule::shuffled) < 1e-11);
    CHECK(difference(wide, design) < 1e-11);
#endif
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

TEST_CASE("emulated: golden cases", "[emulated]") {
  EmulatedDevice<> device;
  int cases = 0;
  for (const auto& name : golden_cases()) {
    if (!name.ends_with("_tiny")) continue;
    CAPTURE(name);
    GoldenCase<R, EmulatedDevice<>> c(device, name);
    const auto needs = golden_needs(c);
    const Share share = worst_share(golden_result(c), needs, allowed_float64(c, needs));
    CAPTURE(share.what);
    CHECK(share.value < 1);
    ++cases;
  }
  CHECK(cases == 10);
}

TEST_CASE("emulated: a step that is captured and replayed is a step, bit for bit, in every design", "[emulated]") {
  const auto same = [](const std::string& design, Activations activations = Activations::keep) {
    EmulatedDevice<> plain, capturing;
    const Trained needs = captured_training<R>(plain, design, false, activations), has = captured_training<R>(capturing, design, true, activations);
    CHECK(has.untouched);
    return has == needs;
  };
  for (const auto& design : Designs<EmulatedDevice<>, R>().list()) {
    CAPTURE(design);
    CHECK(same(design));
  }
  CHECK(same("hc", Activations::recompute));
}

// Kernels, products, clears, copies and lists that travel as arguments, of forward, backward and optimizer: what a captured step holds.
// docs/measured.md has this table.
TEST_CASE("emulated: launches of a step", "[emulated]") {
  const auto launches = [](const std::string& design, int layers) {
    EmulatedDevice<> device;
    Transformer<EmulatedDevice<>, R> model(device, {20, 8, layers, 2, 1, 6}, Designs<EmulatedDevice<>, R>().make(design));
    model.initialize(3);
    Tape<EmulatedDevice<>, R> tape(device);
    Adamw<EmulatedDevice<>, R> adamw(model.parameters(), {});
    const auto batch = std::make_shared<TokenBatch<EmulatedDevice<>>>(device, 6);
    batch->fill(std::vector<std::int32_t>{1, 2, 3, 4, 5, 6}, std::vector<std::int32_t>{2, 3, 4, 5, 6, 7});
    adamw.prepare(0.1);
    const auto before = device.launches();
    const auto h = model.forward(tape, std::shared_ptr<const TokenBatch<EmulatedDevice<>>>(batch), 1);
    tape.backward(model.head_loss(h, batch, 6));
    adamw.launch();
    return int(device.launches() - before);
  };
  const std::map<std::string, std::pair<int, int>> needs{  // a + b L; block_attn_res up to 4 blocks, which are one group
      {"attn_res", {25, 60}}, {"block_attn_res", {25, 60}}, {"deepnorm", {17, 32}}, {"hc", {23, 62}}, {"keel", {18, 34}},
      {"lns", {20, 32}}, {"mhc", {24, 70}}, {"moda", {12, 40}}, {"pre_ln", {20, 32}}, {"sandwich_ln", {19, 34}}};
  for (const auto& [design, line] : needs)
    for (const int layers : {2, 3, design == "block_attn_res" ? 4 : 5}) {
      CAPTURE(design, layers);
      CHECK(launches(design, layers) == line.first + line.second * layers);
    }
}
