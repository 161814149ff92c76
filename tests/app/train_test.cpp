// Runs: the record they leave, kill and resume bit by bit, interruption, divergence.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

Json read_json(const std::filesystem::path& file) { return Json::parse(read_whole(file)); }

// Every line of metrics.jsonl without the times, which no two runs share.
std::vector<Json> metrics(const std::filesystem::path& run) {
  std::vector<Json> lines;
  std::ifstream in(run / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    lines.push_back(Json::parse(line));
    lines.back().erase("time_s");
  }
  return lines;
}

}  // namespace

TEST_CASE("app: a run leaves its config, metrics, summary and checkpoint") {
  const TempFolder folder;
  const auto run = folder / "run";
  const Outcome o =
      app(folder, joined({"train", "--out", run.string()},
                         small_run(folder, {"train.eval_every=25", "run.weights=true", "run.log_every=20"})));
  INFO(o.err);
  REQUIRE(o.exit == 0);
  CHECK_THAT(o.out, Contains("pre_ln") && Contains("step 20/60  loss ") && Contains("tok/s  ETA ") &&
                        Contains("step 25  validation loss ") && !Contains("\r"));

  const auto lines = metrics(run);
  REQUIRE(lines.size() == 63);  // 60 steps, validations after 25, 50 and 60
  CHECK(lines[0]["step"] == 1);
  CHECK(lines[0]["tokens"] == 128);
  CHECK(lines[25]["step"] == 25);
  CHECK(lines[25].contains("validation_loss"));
  CHECK(lines[59 + 2]["loss"].get<double>() < lines[0]["loss"].get<double>() - 1);

  const Json s = read_json(run / "summary.json");
  CHECK(s["status"] == "finished");
  CHECK(s["design"] == "pre_ln");
  CHECK(s["steps"] == 60);
  CHECK(s["tokens"] == 60 * 128);
  CHECK(s["parameters"]["total"] ==
        s["parameters"]["embedding"].get<int>() + s["parameters"]["backbone"].get<int>() +
            s["parameters"]["norm"].get<int>() + s["parameters"]["head"].get<int>());
  CHECK(s["validation_loss"] == lines.back()["validation_loss"]);
  CHECK(s["validation_loss"].get<double>() < lines[0]["loss"].get<double>() - 1);
  CHECK(s["peak_memory_bytes"].get<double>() > 0);
  CHECK(s["tokens_per_s"].get<double>() > 0);
  CHECK(s["config"]["model"]["ffn_hidden"] == 96);
  CHECK(s["versions"].contains("gemm"));
  CHECK(std::filesystem::file_size(run / "weights.safetensors") <
        std::filesystem::file_size(run / "checkpoint.safetensors") / 2);

  SECTION("its config.toml alone repeats it, on another number of threads") {
    const Outcome again = app(folder, {"train", "--config", (run / "config.toml").string(), "--out",
                                       (folder / "again").string(), "run.threads=2"});
    INFO(again.err);
    REQUIRE(again.exit == 0);
    CHECK(metrics(folder / "again") == lines);
  }
  SECTION("it is not overwritten unless told to") {
    const auto args = joined({"train", "--out", run.string()}, small_run(folder));
    const Outcome refused = app(folder, args);
    CHECK(refused.exit == 2);
    CHECK_THAT(refused.err, Contains("holds a finished run; --force starts anew"));
    CHECK(metrics(run) == lines);
    CHECK(app(folder, joined(args, {"--force", "train.steps=2"})).exit == 0);
    CHECK(metrics(run).size() == 3);
  }
  SECTION("resuming it does nothing, and refuses to be another run") {
    const Outcome done = app(folder, {"train", "--resume", "--out", run.string()});
    CHECK(done.exit == 0);
    CHECK_THAT(done.out, Contains("nothing is left to do"));
    const Outcome other = app(folder, {"train", "--resume", "--out", run.string(), "train.lr=0.5"});
    CHECK(other.exit == 2);
    CHECK_THAT(other.err, Contains("holds another run: train.lr is 0.002 there and 0.5 here"));
  }
}

TEST_CASE("app: 2N steps = N, kill -9, resume, N; bit by bit") {
  for (const char* design : {"pre_ln", "hc", "attn_res"}) {
    const TempFolder folder;
    const std::vector<std::string> settings =
        small_run(folder, {std::string("residual.design=") + design, "train.steps=240", "train.eval_every=60",
                           "run.checkpoint_every=25"});
    REQUIRE(app(folder, joined({"train", "--out", (folder / "whole").string()}, settings)).exit == 0);

    const auto run = folder / "killed";
    for (const std::size_t lines : {60u, 130u}) {  // twice, at no step in particular
      Process p(folder, joined({"train", "--resume", "--out", run.string()}, settings));
      REQUIRE(wait_for_lines(p, run / "metrics.jsonl", lines));
      p.send(SIGKILL);
      REQUIRE(p.wait().exit == 128 + SIGKILL);  // it was not done yet
    }
    CHECK(!std::filesystem::exists(run / "summary.json"));
    const Outcome refused = app(folder, joined({"train", "--out", run.string()}, settings));
    CHECK(refused.exit == 2);
    CHECK_THAT(refused.err,
               Contains("holds an unfinished run; --resume goes on with it, --force starts anew"));
    std::ofstream(run / "metrics.jsonl", std::ios::app)
        << "{\"step\": 239, \"lo";  // a line cut off by the kill
    const Outcome rest = app(folder, {"train", "--resume", "--out", run.string()});
    INFO(rest.err);
    REQUIRE(rest.exit == 0);
    CHECK_THAT(rest.out, Contains("goes on after step "));
    CHECK(metrics(run) == metrics(folder / "whole"));
    CHECK(read_whole(run / "checkpoint.safetensors") == read_whole(folder / "whole/checkpoint.safetensors"));
  }
}

TEST_CASE("app: SIGINT and SIGTERM finish the step, save and exit with 130") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const TempFolder folder;
    const auto run = folder / "run";
    const auto settings = small_run(folder, {"train.steps=240", "run.checkpoint_every=0"});
    Process p(folder, joined({"train", "--out", run.string()}, settings));
    REQUIRE(wait_for_lines(p, run / "metrics.jsonl", 50));
    p.send(signal);
    const Outcome o = p.wait();
    CHECK(o.exit == 130);
    CHECK_THAT(o.out, Contains("interrupted after step ") && Contains("--resume goes on from"));
    const Json s = read_json(run / "summary.json");
    CHECK(s["status"] == "interrupted");
    CHECK(s["steps"] == metrics(run).size());
    REQUIRE(app(folder, {"train", "--resume", "--out", run.string()}).exit == 0);
    REQUIRE(app(folder, joined({"train", "--out", (folder / "whole").string()}, settings)).exit == 0);
    CHECK(metrics(run) == metrics(folder / "whole"));
  }
}

TEST_CASE("app: two processes do not train in one folder") {
  const TempFolder folder, other;
  const auto args = joined({"train", "--resume", "--out", (folder / "run").string()},
                           small_run(folder, {"train.steps=2000"}));
  Process first(folder, args);
  REQUIRE(wait_for_lines(first, folder / "run/metrics.jsonl", 2));
  const Outcome second = app(other, args);
  CHECK(second.exit == 3);
  CHECK_THAT(second.err, Contains("another process is training in this folder"));
}

TEST_CASE("app: a run that diverges stops, says where, keeps its record and exits with 4") {
  const TempFolder folder;
  const auto run = folder / "run";
  const Outcome o =
      app(folder, joined({"train", "--out", run.string()}, small_run(folder, {"train.lr=1e6"})));
  CHECK(o.exit == 4);
  const Json s = read_json(run / "summary.json");
  CHECK(s["status"] == "diverged");
  const auto step = s["diverged_at_step"].get<std::size_t>();
  CHECK(step < 60);
  CHECK_THAT(o.err, Contains("depthbench: diverged at step " + std::to_string(step) + " of 60"));
  CHECK(metrics(run).size() == step);
  CHECK(s["validation_loss"].is_null());
  CHECK(app(folder, {"train", "--resume", "--out", run.string()}).exit == 4);
}

TEST_CASE("app: validation by document reports both means") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "documents");
  const std::string text = read_whole(small_text(folder));
  for (int i = 0; i < 10; ++i)
    folder.write("documents/" + std::to_string(i) + ".txt", text.substr(std::size_t(i) * 5000, 20 + 300 * i));
  const auto run = folder / "run";
  const Outcome o = app(
      folder, joined({"train", "--out", run.string()},
                     small_run(folder, {"data.text=" + (folder / "documents").string(), "data.held_out=0.3",
                                        "data.validation=documents", "train.steps=20"})));
  INFO(o.err);
  REQUIRE(o.exit == 0);
  CHECK_THAT(o.out, Contains("10 documents") && Contains("by document, ") &&
                        Contains("in the published convention"));
  const Json s = read_json(run / "summary.json");
  // three documents, each cut to 32 tokens: 31 labels each
  CHECK(s["published_loss"].get<double>() == Approx(s["validation_loss"].get<double>() * 31 / 32));
}
