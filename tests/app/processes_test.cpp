// Several processes train one run: mpirun -n N depthbench train ...   Passed over where the app has no MPI, or there is no mpirun.
#include "tests/catch.hpp"
#include "tests/app/app.hpp"

#include <sstream>

using namespace depthbench_test;

namespace {

bool there_is_mpi(const TempFolder& folder) {
  if (std::system("command -v mpirun >/dev/null 2>&1") != 0) return false;
  return app(folder, {"info"}).out.find("mpi         not built") == std::string::npos;
}
Outcome mpirun(const TempFolder& folder, int n, std::vector<std::string> args) {
  std::vector<std::string> all{"--allow-run-as-root", "--oversubscribe", "-n", std::to_string(n), DEPTHBENCH_APP};
  return Process(folder, joined(all, args), "mpirun").wait();
}
// "loss":...,"grad_norm":... of each step
std::vector<std::string> steps_of(const std::filesystem::path& run) {
  std::vector<std::string> steps;
  std::istringstream in(read_whole(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);)
    if (const auto at = line.find("\"loss\""); at != std::string::npos) steps.push_back(line.substr(at, line.find(",\"lr\"") - at));
  return steps;
}

}  // namespace

TEST_CASE("processes: 1, 2 and 4 of them write the same losses, bit by bit", "[app]") {
  const TempFolder folder;
  if (!there_is_mpi(folder)) {
    WARN("no MPI: nothing was tested");
    return;
  }
  const auto settings = small_run(folder, {"train.gradient_parts=4", "train.micro_batch=1", "train.steps=20", "residual.design=hc"});
  const auto train = [&](const std::string& name) { return joined({"train", "--out", (folder / name).string()}, settings); };
  CHECK(app(folder, train("alone")).exit == 0);
  const auto alone = steps_of(folder / "alone");
  REQUIRE(alone.size() == 20);
  for (const int n : {1, 2, 4}) {
    const std::string name = "ranks" + std::to_string(n);
    const auto outcome = mpirun(folder, n, train(name));
    INFO(outcome.err);
    CHECK(outcome.exit == 0);
    CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') < 30);  // one process speaks
    CHECK(steps_of(folder / name) == alone);
    CHECK(read_whole(folder / name / "checkpoint.safetensors") == read_whole(folder / "alone" / "checkpoint.safetensors"));
  }
}

TEST_CASE("processes: a killed one ends the job, and the run goes on from its checkpoint", "[app]") {
  const TempFolder folder;
  if (!there_is_mpi(folder)) {
    WARN("no MPI: nothing was tested");
    return;
  }
  const auto settings = small_run(folder, {"train.gradient_parts=2", "train.steps=3000", "run.checkpoint_every=10"});
  const auto run = folder / "run";
  const std::vector<std::string> job{"--allow-run-as-root", "--oversubscribe", "-n", "2", DEPTHBENCH_APP};
  Process process(folder, joined(job, joined({"train", "--out", run.string()}, settings)), "mpirun");
  REQUIRE(wait_for_lines(process, run / "metrics.jsonl", 50));
  const auto ranks = process.children();
  REQUIRE(ranks.size() >= 2);
  ::kill(ranks.back(), SIGKILL);
  const auto killed = process.wait();
  CHECK(killed.exit != 0);
  CHECK(killed.err.find("signal 9") != std::string::npos);

  Process again(folder, joined(job, joined({"train", "--resume", "--out", run.string()}, settings)), "mpirun");
  const std::size_t lines = steps_of(run).size();
  CHECK(lines >= 10);
  CHECK(wait_for_lines(again, run / "metrics.jsonl", lines + 30));
  const auto steps = steps_of(run);

  CHECK(app(folder, joined({"train", "--out", (folder / "whole").string()}, joined(settings, {"run.log_every=1000000"}))).exit == 0);
  const auto whole = steps_of(folder / "whole");
  REQUIRE(whole.size() >= steps.size());
  for (std::size_t i = 0; i < lines + 20; ++i) REQUIRE(steps[i] == whole[i]);  // as if nobody had been killed
}

TEST_CASE("processes: a batch that cannot be shared out, said once", "[app]") {
  const TempFolder folder;
  if (!there_is_mpi(folder)) {
    WARN("no MPI: nothing was tested");
    return;
  }
  const auto outcome = mpirun(folder, 3, joined({"train", "--out", (folder / "x").string()}, small_run(folder)));
  CHECK(outcome.exit == 2);
  const auto first = outcome.err.find("cannot be shared out to 3 parts");
  CHECK(first != std::string::npos);
  CHECK(outcome.err.find("cannot be shared out", first + 1) == std::string::npos);
}
