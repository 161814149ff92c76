#include "depthbench/train/trainer.hpp"

#include "tests/catch.hpp"
#include "tests/io/temp_folder.hpp"
#include "tests/train/run.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("trainer: learns, and reports what it did", "[train]") {
  Run<float> run(short_run(40));
  auto& t = run.trainer();
  CHECK(t.total() == 40);
  StepRecord first, last;
  for (int s = 1; !t.done(); ++s) {
    last = t.step();
    if (s == 1) first = last;
    CHECK(last.step == s);
    CHECK(last.lr == learning_rate(s, 40, 4, 1e-2, 0.1));
    CHECK(last.tokens == 64 * s);
    CHECK(last.grad_norm > 0);
    CHECK(last.time_s > 0);
    CHECK_FALSE(last.diverged);
  }
  CHECK(t.done_steps() == 40);
  CHECK(first.loss == Approx(std::log(30)).epsilon(0.05));
  CHECK(last.loss < 0.8 * first.loss);
}

TEST_CASE("trainer: the number of steps follows from tokens per parameter", "[train]") {
  auto c = short_run(0);
  c.tokens_per_parameter = 0.5;
  Run<float> run(c);
  CHECK(run.trainer().total() == std::llround(0.5 * double(run.model.parameters().numel()) / 64));
}

TEST_CASE("trainer: gradients of micro-batches add up to those of the batch", "[train]") {
  std::vector<double> whole;
  for (const std::int64_t micro : {4, 2, 1, 3}) {  // 3: a short one at the end
    auto c = short_run(1);
    c.micro_batch = micro;
    c.adamw.clip = 0;
    c.adamw.weight_decay = 0;
    Run<double> run(c);
    const auto r = run.trainer().step();
    std::vector<double> now{r.loss, r.grad_norm};
    for (const auto& p : run.model.parameters().list()) {  // a tenth of the first moment is the gradient
      const auto m = run.trainer().optimizer().first_moment(p);
      now.insert(now.end(), m.begin(), m.end());
    }
    if (micro == 4) whole = now;
    CAPTURE(micro);
    REQUIRE(now.size() == whole.size());
    double worst = 0;
    for (std::size_t i = 0; i < now.size(); ++i) worst = std::max(worst, std::fabs(now[i] - whole[i]));
    CHECK(worst < 1e-14);
  }
}

TEST_CASE("trainer: the loss is the mean over labels, windows without their last position", "[train]") {
  auto c = short_run(1);
  Run<double> run(c);
  std::vector<std::int32_t> tokens(64), targets(64);
  run.sampler.batch(0, 4, tokens, targets);
  CHECK(std::count(targets.begin(), targets.end(), ignored_target) == 4);
  Tape<Cpu, double> tape(run.cpu);
  std::vector<double> nll(64);
  run.model.loss(tape, tokens, targets, 4, 60, Activations::keep, nll.data());
  double sum = 0;
  for (const double x : nll) sum += x;
  CHECK(run.trainer().step().loss == Approx(sum / 60).epsilon(1e-14));
}

TEST_CASE("trainer: the same bits on any number of threads, kept or recomputed", "[train]") {
  std::vector<double> one;
  for (const int threads : {1, 2, 3}) for (const auto a : {Activations::keep, Activations::recompute}) {
    auto c = short_run(4);
    c.micro_batch = 3;
    c.activations = a;
    Run<float> run(c, threads);
    while (!run.trainer().done()) run.trainer().step();
    if (one.empty()) one = run.values();
    CHECK(run.values() == one);
  }
}

TEST_CASE("trainer: resumes a run whose seeds need all 64 bits", "[train]") {
  const TempFolder folder;
  auto c = short_run();
  c.seed = ~std::uint64_t{0};
  c.data_seed = std::uint64_t{1} << 63;
  Run<float> run(c);
  const double first = run.trainer().step().loss;
  run.trainer().save(folder / "c.safetensors");
  Run<float> again(c);
  again.trainer().resume(folder / "c.safetensors");
  CHECK(again.trainer().step().loss == run.trainer().step().loss);
  CHECK(again.trainer().done_steps() == 2);
  c.seed = 3;
  Run<float> other(c);
  CHECK(other.trainer().step().loss != first);
  CHECK_THROWS_WITH(other.trainer().resume(folder / "c.safetensors"),
                    Catch::Contains("resume: train.seed is 18446744073709551615 in") && Catch::Contains("and 3 now"));
}

TEST_CASE("trainer: seeds change initial values and the order of windows", "[train]") {
  const auto losses = [](std::uint64_t seed, std::uint64_t data_seed) {
    auto c = short_run(3);
    c.seed = seed;
    c.data_seed = data_seed;
    Run<float> run(c);
    std::vector<double> l;
    while (!run.trainer().done()) l.push_back(run.trainer().step().loss);
    return l;
  };
  CHECK(losses(0, 42) == losses(0, 42));
  CHECK(losses(0, 42) != losses(1, 42));
  CHECK(losses(0, 42) != losses(0, 43));
}

template <template <class, class> class Design> void resumes_exactly() {
  const TempFolder folder;
  const auto c = short_run(12);
  Run<float, Design> straight(c);
  std::vector<double> losses;
  while (!straight.trainer().done()) {
    losses.push_back(straight.trainer().step().loss);
    if (losses.size() == 5) straight.trainer().save(folder / "half.safetensors", {{"note", "kept"}});
  }
  Run<float, Design> resumed(c, 3);
  resumed.trainer().step();  // what was there before does not matter
  const auto notes = resumed.trainer().resume(folder / "half.safetensors");
  CHECK(notes.at("note") == "kept");
  CHECK(resumed.trainer().done_steps() == 5);
  for (std::size_t s = 5; s < 12; ++s) {
    const auto r = resumed.trainer().step();
    CHECK(r.loss == losses[s]);
    CHECK(r.tokens == std::int64_t(s + 1) * 64);
  }
  CHECK(resumed.trainer().done());
  CHECK(resumed.values() == straight.values());
  for (const auto& p : resumed.model.parameters().list()) {
    const auto a = resumed.trainer().optimizer().second_moment(p),
               b = straight.trainer().optimizer().second_moment(straight.model.parameters()[p.name]);
    CHECK(std::equal(a.begin(), a.end(), b.begin()));
  }
}
TEST_CASE("trainer: goes on from a checkpoint bit by bit", "[train]") {
  resumes_exactly<PreLn>();
  resumes_exactly<AttnRes>();
}

TEST_CASE("trainer: refuses the checkpoint of another run, saying why", "[train]") {
  const TempFolder folder;
  const auto path = folder / "a.safetensors";
  Run<float> run(short_run(12));
  run.trainer().save(path);
  const auto resume = [&](auto change) -> std::string {
    auto c = short_run(12);
    change(c);
    Run<float> other(c);
    try {
      other.trainer().resume(path);
    } catch (const config_error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(resume([](auto&) {}) == "");
  CHECK(resume([](auto& c) { c.steps = 13; }) ==
        fmt::format("resume: train.total_steps is 12 in {} and 13 now", path.string()));
  CHECK(resume([](auto& c) { c.seed = 1; }) ==
        fmt::format("resume: train.seed is 0 in {} and 1 now", path.string()));
  CHECK(resume([](auto& c) { c.data_seed = 7; }) ==
        fmt::format("resume: train.data_seed is 42 in {} and 7 now", path.string()));
  save_checkpoint(path, run.model.parameters(), &run.trainer().optimizer(), {{"train.cursor", "x"}});
  CHECK_THROWS_WITH(run.trainer().resume(path),
                    path.string() + ": has no train.total_steps in its metadata, needs it to resume");
}

TEST_CASE("trainer: a run that diverges says so and leaves the parameters", "[train]") {
  Run<float> run(short_run(12));
  auto& embedding = run.model.parameters()["embeddings.weight"];
  std::fill(embedding.value, embedding.value + embedding.numel(), std::numeric_limits<float>::quiet_NaN());
  const auto norm_before = run.model.parameters()["lm_head.norm.weight"].values()[0];
  const auto r = run.trainer().step();
  CHECK(r.diverged);
  CHECK_FALSE(std::isfinite(r.loss));
  CHECK(run.model.parameters()["lm_head.norm.weight"].values()[0] == norm_before);

  Run<float> far(short_run(12));  // finite, but worse than three times chance
  auto& head = far.model.parameters()["lm_head.w_out.weight"];
  for (std::int64_t i = 0; i < head.numel(); ++i) head.value[i] *= 3e3f;
  CHECK(far.trainer().step().diverged);
}

TEST_CASE("trainer: rejects windows of another length", "[train]") {
  Run<float> run(short_run(12));
  auto c = short_run(12);
  c.seq_len = 32;
  using Made = Trainer<Cpu, float>;
  CHECK_THROWS_AS(Made(run.model, run.sampler, c), config_error);
  CHECK_THROWS_WITH(Made(run.model, run.sampler, c),
                    "trainer: the sampler's windows have 16 tokens, the config says 32");
  c.seq_len = 16;
  c.batch_tokens = 70;
  CHECK_THROWS_WITH(Made(run.model, run.sampler, c),
                    "train: batch_tokens 70 is not a whole number of windows of seq_len 16");
}

TEST_CASE("trainer: a warm step takes nothing from the system", "[train]") {
  Run<float, AttnRes> run(short_run(6));
  run.trainer().step();
  const auto reserved = run.cpu.memory().reserved(), used = run.cpu.memory().in_use();
  while (!run.trainer().done()) run.trainer().step();
  CHECK(run.cpu.memory().reserved() == reserved);
  CHECK(run.cpu.memory().in_use() == used);
}
