// Sweeps: the grid, what is skipped and resumed, the choice of the learning rate, the report.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

std::vector<std::vector<std::string>> read_csv(const std::filesystem::path& file) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    auto& row = rows.emplace_back();
    std::size_t at = 0;
    for (std::size_t comma; (comma = line.find(',', at)) != std::string::npos; at = comma + 1)
      row.push_back(line.substr(at, comma - at));
    row.push_back(line.substr(at));
  }
  return rows;
}

// Opening and closing tags of a page match; returns the first that does not.
std::string unbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = html.find('<', at)) != std::string::npos;) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a '<' without '>'";
    const std::string tag = html.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name =
        tag.substr(tag.starts_with('/'), tag.find_first_of(" \n", 1) - tag.starts_with('/'));
    if (name == "meta" || name == "br") continue;
    if (!tag.starts_with('/'))
      open.push_back(name);
    else if (open.empty() || open.back() != name)
      return tag;
    else
      open.pop_back();
  }
  return open.empty() ? "" : open.back();
}

}  // namespace

TEST_CASE("app: a sweep trains the grid, survives divergence, and reports") {
  const TempFolder folder;
  const auto out = folder / "sweep";
  const auto args =
      joined({"sweep", "--out", out.string()},
             small_run(folder, {"train.steps=30", "sweep.designs=pre_ln,hc", "sweep.shapes=1x48,2x32",
                                "sweep.lrs=1e-4,3e-3,1e6", "sweep.seeds=0,1", "residual.hc.n_streams=2"}));
  const Outcome dry = app(folder, joined(args, {"--dry-run"}));
  REQUIRE(dry.exit == 0);
  CHECK_THAT(dry.out,
             Contains("hc_2x32_lr0.003_seed1") && Contains("24 runs, 92.2k tokens") && Contains("to do"));
  CHECK(!std::filesystem::exists(out));

  const Outcome o = app(folder, args);
  INFO(o.err);
  REQUIRE(o.exit == 0);
  CHECK_THAT(o.out, Contains("pre_ln_1x48_lr1000000_seed0  diverged at step ") &&
                        Contains("warning: hc_2x32_lr1000000_seed1 diverged at step ") &&
                        Contains("report: "));

  const auto rows = read_csv(out / "results.csv");
  REQUIRE(rows.size() == 25);
  CHECK(rows[0] == std::vector<std::string>{"design", "n_layers", "d_model", "aspect_ratio", "parameters",
                                            "lr", "seed", "steps", "tokens", "train_loss", "val_loss",
                                            "best_lr", "seconds", "status"});
  int diverged = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == 14);
    CHECK(rows[i][11] == "0.003");
    diverged += rows[i][13] == "diverged";
    CHECK((rows[i][13] == "diverged") == (rows[i][5] == "1000000"));
    CHECK((rows[i][13] == "diverged") == rows[i][10].empty());
    if (rows[i][5] == "0.003") CHECK(std::stod(rows[i][10]) < 4);
    CHECK(rows[i][3] == (rows[i][1] == "1" ? "48" : "16"));
  }
  CHECK(diverged == 8);

  const Json j = Json::parse(read_whole(out / "results.json"));
  CHECK(j["runs"].size() == 24);
  REQUIRE(j["best"].size() == 4);
  for (const auto& b : j["best"]) {
    CHECK(b["seeds"] == 2);
    CHECK(b["val_loss_low"].get<double>() < b["val_loss_high"].get<double>());
  }

  const std::string page = read_whole(out / "index.html"),
                    picture = read_whole(out / "loss_by_aspect_ratio.svg");
  CHECK(page.find("http") == std::string::npos);
  CHECK(page.find("src=") == std::string::npos);
  CHECK(page.find("@import") == std::string::npos);
  CHECK(unbalanced(page) == "");
  CHECK(unbalanced(picture) == "");
  CHECK_THAT(page, Contains("prefers-color-scheme:dark") && Contains("width=device-width") &&
                       Contains("unigram entropy") &&
                       Contains("depthbench train --config runs/hc_2x32_lr0.003_seed1/config.toml") &&
                       Contains("<svg class=\"chart\""));
  CHECK_THAT(picture,
             Contains("xmlns=\"http://www.w3.org/2000/svg\"") && Contains(">pre_ln<") && Contains(">hc<"));

  SECTION("again: nothing is trained, the results are the same") {
    const std::string before = read_whole(out / "results.csv");
    const Outcome again = app(folder, args);
    CHECK(again.exit == 0);
    CHECK_THAT(again.out, !Contains("tok/s"));
    CHECK(read_whole(out / "results.csv") == before);
  }
  SECTION("another length is another sweep") {
    const Outcome other = app(folder, joined(args, {"train.steps=31"}));
    CHECK(other.exit == 2);
    CHECK_THAT(other.err, Contains("holds another run: train.steps is 30 there and 31 here"));
  }
}

TEST_CASE("app: a sweep that was interrupted or killed goes on where it was") {
  const TempFolder folder;
  const auto out = folder / "sweep", whole = folder / "whole";
  const auto with = [&](const std::filesystem::path& to) {
    return joined(
        {"sweep", "--out", to.string()},
        small_run(folder, {"train.steps=150", "sweep.designs=pre_ln,attn_res", "run.checkpoint_every=20"}));
  };
  {
    Process p(folder, with(out));
    REQUIRE(wait_for_lines(p, out / "runs/pre_ln_2x32_lr0.002_seed0/metrics.jsonl", 50));
    p.send(SIGINT);
    const Outcome o = p.wait();
    INFO(o.err);
    CHECK(o.exit == 130);
    CHECK_THAT(o.out, Contains("interrupted after step ") && Contains("the same command goes on"));
  }
  {
    Process p(folder, with(out));
    REQUIRE(wait_for_lines(p, out / "runs/attn_res_2x32_lr0.002_seed0/metrics.jsonl", 50));
    p.send(SIGKILL);
    p.wait();
  }
  REQUIRE(app(folder, with(out)).exit == 0);
  REQUIRE(app(folder, with(whole)).exit == 0);
  const auto a = read_csv(out / "results.csv"), b = read_csv(whole / "results.csv");
  REQUIRE(a.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t k : {0, 9, 10, 13}) CHECK(a[i][k] == b[i][k]);
}

TEST_CASE("app: a sweep from a file; a best rate at the edge of its grid is a warning") {
  const TempFolder folder;
  small_text(folder);
  const auto file = folder.write("sweep.toml", R"(
[sweep]
designs = ["pre_ln"]
shapes = [{ n_layers = 1, d_model = 32, n_heads = 2, ffn_hidden = 48 }, "2x16"]
lrs = [1e-4, 3e-3]
[train]
seq_len = 32
global_batch_tokens = 128
steps = 20
[data]
text = "text.txt"
held_out = 0.1
)");
  const Outcome o = app(folder, {"sweep", "--config", file.string(), "--out", (folder / "out").string()});
  INFO(o.err);
  REQUIRE(o.exit == 0);
  CHECK_THAT(o.out, Contains("warning: pre_ln: the best learning rate 0.003 lies on the upper edge of its "
                             "grid; a higher one may be better"));
  CHECK_THAT(o.out, Contains("warning: the parameter budgets differ"));
  CHECK_THAT(read_whole(folder / "out/runs/pre_ln_1x32_lr0.003_seed0/config.toml"),
             Contains("ffn_hidden = 48") && Contains("n_heads = 2 "));

  const auto fails = [&](const std::string& setting, const std::string& text) {
    const Outcome bad =
        app(folder, {"sweep", "--config", file.string(), "--out", (folder / "bad").string(), setting});
    CHECK(bad.exit == 2);
    CHECK_THAT(bad.err, Contains(text));
  };
  fails("sweep.shapes=4by4", "sweep.shapes needs shapes as L x d, e.g. 4x64, has '4by4'");
  fails("sweep.shapes=0x4", "needs n_layers and d_model of 1 or more");
  fails("sweep.lrs=", "sweep.lrs needs at least one entry");
  fails("sweep.lrs=1e-3,1e-3", "two runs are named pre_ln_1x32_lr0.001_seed0");
  fails("sweep.designs=pre_ln,hcc", "needs one of ");
  fails("sweep.shape=1x2", "unknown key sweep.shape; the nearest is sweep.shapes");
}

TEST_CASE("app: the demo is nine runs of one parameter budget") {
  const TempFolder folder;
  const Outcome o = app(folder, {"sweep", "--dry-run", "--config",
                                 std::string(DEPTHBENCH_SOURCE_DIR) + "/examples/depthbench/demo.toml",
                                 "--out", (folder / "out").string()});
  INFO(o.err);
  REQUIRE(o.exit == 0);
  CHECK_THAT(o.out, Contains("9 runs, "));
  double least = 1e300, most = 0;
  std::istringstream in(o.out);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, L, d, ratio;
    double parameters = 0;
    if (!(words >> name >> L >> d >> ratio >> parameters) || !name.starts_with("pre_ln_")) continue;
    least = std::min(least, parameters);
    most = std::max(most, parameters);
  }
  CHECK(least > 3e5);
  CHECK(most < 1.02 * least);
}
