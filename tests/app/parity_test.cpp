// The golden cases through the app: one JSON line a case, exit code 1 if one fails.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Json = nlohmann::json;

namespace {

std::vector<Json> lines(const std::string& text) {
  std::vector<Json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(Json::parse(line));
  return all;
}

}  // namespace

TEST_CASE("app: every golden case of the first three designs passes") {
  const TempFolder folder;
  const std::string golden = std::string(DEPTHBENCH_SOURCE_DIR) + "/tests/golden/";
  std::vector<std::string> args{"parity"};
  for (const char* design : {"pre_ln", "hc", "attn_res"})
    for (const char* tag : {"tiny", "extra", "init", "medium"}) args.push_back(golden + design + "_" + tag);
  args.push_back(golden + "pre_ln_tiny_noclip");
  const Outcome o = app(folder, args);
  CHECK(o.exit == 0);
  const auto cases = lines(o.out);
  REQUIRE(cases.size() == 13);
  for (const auto& c : cases) {
    INFO(c.dump());
    CHECK(c["ok"] == true);
    for (const char* key : {"logits", "loss", "states", "grads", "after", "losses"})
      CHECK(c[key].is_number());
    CHECK(c.contains("worst_tensor"));
  }
}

TEST_CASE("app: a case that is not there or not right fails, and the others are still run") {
  const TempFolder folder;
  const std::string good = std::string(DEPTHBENCH_SOURCE_DIR) + "/tests/golden/pre_ln_tiny";
  std::filesystem::create_directory(folder / "changed");
  for (const char* file : {"case.json", "tensors.safetensors"})
    std::filesystem::copy_file(good + "/" + file, folder / ("changed/" + std::string(file)));
  std::string text = read_whole(folder / "changed/case.json");
  const std::size_t at = text.find("10000");  // rope_theta
  REQUIRE(at != std::string::npos);
  folder.write("changed/case.json", text.replace(at, 5, "20000"));
  const Outcome o = app(folder, {"parity", (folder / "none").string(), (folder / "changed").string(), good});
  CHECK(o.exit == 1);
  const auto cases = lines(o.out);
  REQUIRE(cases.size() == 3);
  CHECK(cases[0]["ok"] == false);
  CHECK(cases[0].contains("error"));
  CHECK(cases[1]["ok"] == false);
  CHECK(cases[1]["logits"].get<double>() > 1e-8);
  CHECK(cases[2]["ok"] == true);
}

TEST_CASE("app: the analyses of every design agree with the independent ones") {
  const TempFolder folder;
  const std::string golden = std::string(DEPTHBENCH_SOURCE_DIR) + "/tests/golden/";
  std::vector<std::string> args{"parity", "--analysis"};
  for (const auto& entry : std::filesystem::directory_iterator(golden))
    if (entry.is_directory()) args.push_back(entry.path().string());
  const Outcome o = app(folder, args);
  CHECK(o.exit == 0);
  const auto cases = lines(o.out);
  REQUIRE(cases.size() == 10);  // the cases without analysis.json are passed over
  for (const auto& c : cases) {
    INFO(c.dump());
    CHECK(c["ok"] == true);
    for (const char* key : {"angular_distance", "causal_score", "pruning_delta", "permutation_score", "early_exit_ce", "kl_final", "top5_overlap"})
      CHECK(c[key].get<double>() < 1e-9);
  }
}

TEST_CASE("app: an analysis that differs is told") {
  const TempFolder folder;
  const std::string good = std::string(DEPTHBENCH_SOURCE_DIR) + "/tests/golden/pre_ln_medium";
  std::filesystem::create_directory(folder / "changed");
  for (const char* file : {"case.json", "tensors.safetensors"})
    std::filesystem::copy_file(good + "/" + file, folder / ("changed/" + std::string(file)));
  Json j = Json::parse(read_whole(good + "/analysis.json"));
  j["causal_score"][0][1] = j["causal_score"][0][1].get<double>() * (1 + 1e-7);
  folder.write("changed/analysis.json", j.dump());
  const Outcome o = app(folder, {"parity", "--analysis", (folder / "changed").string()});
  CHECK(o.exit == 1);
  CHECK(lines(o.out)[0]["ok"] == false);
}
