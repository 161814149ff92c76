// eval and info on runs and checkpoints, good and damaged.
#include <nlohmann/json.hpp>

#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Contains;
using Json = nlohmann::json;

TEST_CASE("app: eval finds the loss of the summary again, from the run and from its files") {
  const TempFolder folder;
  const auto run = folder / "run";
  REQUIRE(app(folder, joined({"train", "--out", run.string()},
                             small_run(folder, {"run.weights=true", "residual.design=hc"})))
              .exit == 0);
  const Json summary = Json::parse(read_whole(run / "summary.json"));
  for (const char* file : {"", "checkpoint.safetensors", "weights.safetensors"}) {
    const Outcome o = app(folder, {"eval", (run / file).string(), "--json"});
    INFO(o.err);
    REQUIRE(o.exit == 0);
    const Json j = Json::parse(o.out);
    CHECK(j["loss"] == summary["validation_loss"]);
    CHECK(j["published_loss"] == summary["published_loss"]);
    CHECK(j["step"] == 60);
    CHECK(j["real_tokens"].get<double>() * j["published_loss"].get<double>() ==
          Approx(j["labels"].get<double>() * j["loss"].get<double>()));
  }
  CHECK_THAT(app(folder, {"eval", run.string()}).out,
             Contains("packed windows of 32 tokens") && Contains("nats a label"));

  const Json other =
      Json::parse(app(folder, {"eval", run.string(), "--data",
                               folder.write("z.txt", std::string(500, 'z')).string(), "--json"})
                      .out);
  CHECK(other["real_tokens"] == 501);  // all of it, its end included
  CHECK(other["loss"].get<double>() > summary["validation_loss"].get<double>() + 1);
  const Outcome bad = app(folder, {"eval", run.string(), "model.d_model=16"});
  CHECK(bad.exit == 2);
  CHECK_THAT(bad.err, Contains("eval: model.d_model cannot be changed"));
}

TEST_CASE("app: info tells versions and designs, or what is in a checkpoint") {
  const TempFolder folder;
  const Outcome program = app(folder, {"info"});
  CHECK(program.exit == 0);
  CHECK_THAT(program.out, Contains("vectors") && Contains("products") && Contains("attn_res") &&
                              Contains("residual.n_streams"));
  const Json j = Json::parse(app(folder, {"info", "--json"}).out);
  for (const auto& [design, options] : j["designs"].items())  // every option named there exists
    for (const auto& [option, meaning] : options.items())
      CHECK(
          app(folder, joined({"train", "--dry-run", "residual.design=" + design, "residual." + option + "=2"},
                             small_run(folder)))
              .exit == 0);

  const auto run = folder / "run";
  REQUIRE(app(folder, joined({"train", "--out", run.string()}, small_run(folder, {"train.steps=3"}))).exit ==
          0);
  const Outcome o = app(folder, {"info", run.string()});
  CHECK(o.exit == 0);
  CHECK_THAT(o.out, Contains("step 3, ") && Contains("blocks.1.attention.w_q.weight") &&
                        Contains("(32, 32)") && Contains("n_layers = 2"));
}

TEST_CASE("app: a damaged or foreign checkpoint exits with 3, and nothing is written") {
  const TempFolder folder;
  const auto run = folder / "run", file = run / "checkpoint.safetensors";
  {
    Process p(folder, joined({"train", "--out", run.string()}, small_run(folder, {"train.steps=2000"})));
    REQUIRE(wait_for_lines(p, run / "metrics.jsonl", 5));
    p.send(SIGINT);
    REQUIRE(p.wait().exit == 130);
  }
  const std::string good = read_whole(file), record = read_whole(run / "metrics.jsonl");
  const auto damaged = [&](const std::string& content, const std::string& text) {
    std::ofstream(file, std::ios::binary) << content;
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{"train", "--resume", "--out", run.string()},
          {"eval", run.string()},
          {"info", run.string()}}) {
      const Outcome o = app(folder, args);
      CHECK(o.exit == 3);
      CHECK_THAT(o.err, Catch::StartsWith("depthbench: ") && Contains(text));
    }
    CHECK(read_whole(run / "metrics.jsonl") == record);
  };
  damaged("", "checkpoint.safetensors");
  damaged(good.substr(0, good.size() / 2), "checkpoint.safetensors");
  damaged(std::string(8, '\xff') + good.substr(8), "claims a header of");
  std::string nan = good;
  for (std::size_t i = good.size() - 4000; i < good.size(); ++i) nan[i] = '\xff';
  std::ofstream(file, std::ios::binary) << nan;
  const Outcome o = app(folder, {"train", "--resume", "--out", run.string()});
  CHECK(o.exit == 3);
  CHECK_THAT(o.err, Contains("nan at element"));
  std::ofstream(file, std::ios::binary) << good;
  CHECK(app(folder, {"info", run.string()}).exit == 0);
  CHECK(app(folder, {"eval", (folder / "none").string()}).exit == 3);
}
