#include "depthbench/train/evaluate.hpp"

#include "tests/catch.hpp"
#include "tests/train/run.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE(
    "evaluate: the mean over all labels, whatever the rows of a pass, leaving parameters and memory alone",
    "[train]") {
  Run<double> run(short_run());
  const auto before = run.values();
  Tape<Cpu, double> tape(run.cpu);
  const std::vector ranges{TokenRange{0, 100}, TokenRange{300, 345}};  // the last window is short
  const ValidationSet set = packed_validation(run.corpus, ranges, 16);
  double sum = 0;
  std::int64_t labels = 0;
  for (const auto& batch : set.batches(1)) {
    std::vector<double> nll(batch.tokens.size());
    run.model.loss(tape, batch.tokens, batch.targets, int(batch.rows), 1.0, Activations::keep, nll.data());
    for (std::size_t i = 0; i < nll.size(); ++i)
      if (batch.targets[i] != ignored_target) sum += nll[i], ++labels;
    tape.clear();
  }
  CHECK(labels == std::int64_t(set.labels()));
  const std::size_t in_use = run.cpu.memory().in_use();
  for (const std::int64_t rows : {1, 3, 100}) {
    std::vector<std::uint64_t> progress;
    const auto loss =
        evaluate<Cpu, double>(run.model, tape, set, rows, [&](std::uint64_t done, std::uint64_t of) {
          CHECK(of == set.instances());
          progress.push_back(done);
        });
    CHECK(loss.labels == set.labels());
    CHECK(loss.mean() == Approx(sum / double(labels)).epsilon(1e-13));
    CHECK(progress.back() == set.instances());
    CHECK(progress.size() == (set.instances() + std::uint64_t(rows) - 1) / std::uint64_t(rows));
    CHECK(run.cpu.memory().in_use() == in_use);
  }
  CHECK(run.values() == before);
  CHECK_FALSE(run.model.parameters().list()[0].has_grad);
}
