// analyze, report and task as a user runs them: files that are whole, work that is not done twice, plain refusals.
#include <nlohmann/json.hpp>

#include "depthbench/io/npy.hpp"
#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Contains;
using Json = nlohmann::json;

namespace {

std::string trained(const TempFolder& folder, const std::string& design) {
  const std::string run = (folder / ("runs/" + design)).string();
  const Outcome o = app(folder, {"train", "--out", run, "residual.design=" + design, "model.d_model=16", "model.n_layers=3", "train.seq_len=32",
                                 "train.steps=3", "train.global_batch_tokens=128", "train.lr=1e-2"});
  REQUIRE(o.exit == 0);
  return run;
}

}  // namespace

TEST_CASE("app: analyze writes every analysis whole, and does none twice") {
  const TempFolder folder;
  const std::string run = trained(folder, "hc");
  const Outcome first = app(folder, {"analyze", run, "--windows", "2", "--only", "angular,causal,permutation,lens,pruning,paths,composed"});
  INFO(first.err);
  REQUIRE(first.exit == 0);
  for (const char* name : {"angular", "causal", "permutation", "lens", "pruning", "paths", "composed"}) {
    const Json j = Json::parse(read_whole(run + "/analysis/" + std::string(name) + ".json"));
    CHECK(j["analysis"] == name);
    CHECK(j["windows"] == 2);
    CHECK(j["seq_len"] == 32);
    CHECK(!j["tables"].empty());
  }
  const depthbench::NpyFile angles(run + "/analysis/angular.distance.npy");
  CHECK(angles.shape() == std::vector<std::int64_t>{4, 4});
  const Json j = Json::parse(read_whole(run + "/analysis/angular.json"));
  const auto value = j["tables"]["distance"]["values"][1];
  CHECK(value.get<double>() > 0);
  CHECK(value.get<double>() < 1);
  CHECK(j["tables"]["distance"]["values"][4].is_null());
  CHECK_THAT(read_whole(run + "/analysis/causal.csv"), Contains("table,row,col,value,half_width\nscore,0,1,"));

  const auto written = std::filesystem::last_write_time(run + "/analysis/angular.json");
  const Outcome again = app(folder, {"analyze", run, "--windows", "2", "--only", "angular,causal"});
  CHECK(again.exit == 0);
  CHECK_THAT(again.out, Contains("done before"));
  CHECK(std::filesystem::last_write_time(run + "/analysis/angular.json") == written);
  const Outcome other = app(folder, {"analyze", run, "--windows", "3", "--only", "angular"});
  CHECK_THAT(other.out, !Contains("done before"));
}

TEST_CASE("app: analyze says what a design does not have, and names what it does not know") {
  const TempFolder folder;
  const std::string run = trained(folder, "keel");
  const Outcome o = app(folder, {"analyze", run, "--windows", "1", "--only", "paths,composed"});
  CHECK(o.exit == 0);
  CHECK_THAT(o.out, Contains("not defined for this design: a norm on the stream") && Contains("it has no streams"));
  const Outcome unknown = app(folder, {"analyze", run, "--only", "angulr"});
  CHECK(unknown.exit == 2);
  CHECK_THAT(unknown.err, Contains("there is no analysis angulr; the nearest is angular"));
  const Outcome none = app(folder, {"analyze", (folder / "none").string()});
  CHECK(none.exit == 3);
}

TEST_CASE("app: report shows runs from anywhere with what analyze found in them") {
  const TempFolder folder;
  for (const char* design : {"hc", "keel"}) {
    const std::string run = trained(folder, design);
    REQUIRE(app(folder, {"analyze", run, "--windows", "1", "--only", "angular,composed,pruning"}).exit == 0);
  }
  folder.write("runs/keel/analysis/causal.json", "{\"tables\": {\"score\": {\"rows\": 90000, \"cols\": 1");  // half a file
  const Outcome o = app(folder, {"report", (folder / "runs").string(), "--published", "--out", (folder / "page").string()});
  INFO(o.err);
  REQUIRE(o.exit == 0);
  const std::string page = read_whole(folder / "page/index.html");
  CHECK_THAT(page, Contains("Angular distance of depth states") && Contains("Effective rank of composed residual maps") &&
                       Contains("Leaving a block out") && Contains("Nothing here was measured by this program"));
  CHECK_THAT(page, !Contains("<h3>Causal score"));
  CHECK_THAT(page, !Contains("src=\"http") && !Contains("href=\"http"));  // opens offline
  const Outcome empty = app(folder, {"report", (folder / "page").string(), "--out", (folder / "x").string()});
  CHECK(empty.exit == 3);
  CHECK_THAT(empty.err, Contains("holds no run"));
}

TEST_CASE("app: task trains a grid, writes a table, and goes on where it was") {
  const TempFolder folder;
  const std::vector<std::string> args{"task", "--out", (folder / "t").string(), "--hops", "1", "--letters", "2", "--seq-len", "12", "--tests", "40",
                                      "sweep.designs=pre_ln,attn_res", "sweep.shapes=2x32", "train.steps=120", "train.lr=1e-2",
                                      "train.global_batch_tokens=384"};
  const Outcome o = app(folder, args);
  INFO(o.err);
  REQUIRE(o.exit == 0);
  const std::string table = read_whole(folder / "t/results.csv");
  CHECK_THAT(table, Contains("design,n_layers,d_model,n_heads,parameters,lr,seed,train_loss,accuracy_0_hops,accuracy_1_hops\n"));
  for (const auto& file : std::filesystem::directory_iterator(folder / "t")) {
    if (file.path().extension() != ".json") continue;
    const Json j = Json::parse(read_whole(file.path()));
    CHECK(j["accuracy"][0].get<double>() > 0.9);  // copying the letter; chance is 0.5
  }
  const Outcome again = app(folder, args);
  CHECK(again.exit == 0);
  CHECK(read_whole(folder / "t/results.csv") == table);
}
