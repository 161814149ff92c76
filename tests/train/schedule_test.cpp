#include "depthbench/train/schedule.hpp"

#include "depthbench/train/config.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("schedule: warmup is linear from step 1, then a cosine to a tenth", "[train]") {
  // total 110, warmup 10, peak 2
  const auto lr = [](std::int64_t s) { return learning_rate(s, 110, 10, 2.0, 0.1); };
  CHECK(lr(1) == 0.2);
  CHECK(lr(5) == 1.0);
  CHECK(lr(9) == 1.8);
  CHECK(lr(10) == 2.0);  // the peak, at the end of the warmup
  CHECK(lr(60) == Approx(2 * (0.1 + 0.9 * 0.5)).epsilon(1e-14));
  CHECK(lr(35) == Approx(2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2)).epsilon(1e-14));
  CHECK(lr(110) == Approx(0.2).epsilon(1e-14));
  for (int s = 2; s <= 10; ++s) CHECK(lr(s) > lr(s - 1));
  for (int s = 11; s <= 110; ++s) CHECK(lr(s) < lr(s - 1));
}

TEST_CASE("schedule: without warmup, all warmup, without decay", "[train]") {
  CHECK(learning_rate(1, 2, 0, 1.0, 0.0) == Approx(0.5));
  CHECK(learning_rate(2, 2, 0, 1.0, 0.0) == Approx(0).margin(1e-15));
  CHECK(learning_rate(3, 4, 4, 1.0, 0.1) == 0.75);
  CHECK(learning_rate(4, 4, 4, 1.0, 0.1) == 1.0);
  CHECK(learning_rate(1, 1, 1, 1.0, 0.1) == 1.0);
  for (int s = 1; s <= 10; ++s) CHECK(learning_rate(s, 10, 0, 3.0, 1.0) == Approx(3.0));
}

TEST_CASE("train config: steps, warmup and windows", "[train]") {
  TrainConfig c;
  c.seq_len = 128;
  c.batch_tokens = 1024;
  CHECK(c.windows() == 8);
  CHECK(c.warmup_steps(3800) == 380);
  CHECK(c.warmup_steps(14) == 1);
  CHECK(c.warmup_steps(15) == 2);
  CHECK(total_steps(c, 1000000) == 19531);  // 20 tokens a parameter: 2e7 / 1024 = 19531.25
  c.steps = 7;
  CHECK(total_steps(c, 1000000) == 7);
  c.steps = 0;
  CHECK(total_steps(c, 1) == 1);
}

TEST_CASE("train config: rejects what no run can have, saying what", "[train]") {
  const auto message = [](auto change) -> std::string {
    TrainConfig c;
    change(c);
    try {
      check(c);
    } catch (const config_error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([](auto&) {}) == "");
  CHECK(message([](auto& c) { c.seq_len = 1; }) == "train: seq_len is 1, needs 2 or more");
  CHECK(message([](auto& c) { c.batch_tokens = 0; }) == "train: batch_tokens is 0, needs a positive number");
  CHECK(message([](auto& c) { c.batch_tokens = 4097; }) ==
        "train: batch_tokens 4097 is not a whole number of windows of seq_len 256");
  CHECK(message([](auto& c) { c.micro_batch = 0; }) == "train: micro_batch is 0, needs a positive number");
  CHECK(message([](auto& c) { c.lr = NAN; }) == "train: lr is nan, needs a positive number");
  CHECK(message([](auto& c) { c.lr = -1; }) == "train: lr is -1, needs a positive number");
  CHECK(message([](auto& c) { c.steps = -1; }) ==
        "train: steps is -1, needs 0 (from tokens_per_parameter) or more");
  CHECK(message([](auto& c) { c.tokens_per_parameter = 0; }) ==
        "train: tokens_per_parameter is 0, needs a positive number");
  CHECK(message([](auto& c) { c.tokens_per_parameter = 0; c.steps = 5; }) == "");
  CHECK(message([](auto& c) { c.warmup_fraction = 1.5; }) == "train: warmup_fraction is 1.5, needs 0 to 1");
  CHECK(message([](auto& c) { c.final_lr_fraction = -0.5; }) ==
        "train: final_lr_fraction is -0.5, needs 0 to 1");
}
