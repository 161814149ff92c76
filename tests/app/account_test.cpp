// `depthbench account` and `depthbench shapes` as users run them.
#include <nlohmann/json.hpp>

#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

std::vector<std::string> account(std::vector<std::string> more) { return joined({"account"}, more); }
json parsed(const Outcome& o) {
  REQUIRE(o.exit == 0);
  return json::parse(o.out);
}

}  // namespace

TEST_CASE("app: account --json of the shape of the issue") {
  const TempFolder folder;
  const json j = parsed(app(
      folder, account({"--design", "mhc", "--layers", "24", "--d-model", "1024", "--ffn", "2736", "--heads",
                       "16", "--kv-heads", "16", "--vocab", "50280", "--seq-len", "4096", "--json"})));
  CHECK(j["parameters"]["total"] == 410126608);
  CHECK(j["parameters"]["embedding"] == 51486720);
  CHECK(j["parameters"]["backbone"] == 302432256);
  CHECK(j["parameters"]["residual"] == 4719888);
  CHECK(j["flops"]["forward_body"].get<double>() == Approx(3.302e12).epsilon(0.001));
  CHECK(j["flops"]["forward_head"].get<double>() == Approx(2.0 * 4096 * 1024 * 50280));
  CHECK(j["flops"]["attention_share"].get<double>() == Approx(0.2498).margin(0.0005));
  CHECK(j["flops"]["residual"].get<double>() == Approx(480.0 * 4096 * 1024 * 24).epsilon(0.02));
  CHECK(j["residual_published"]["exact_to_published"].get<double>() == Approx(1.0071).margin(0.002));
  CHECK(j["flops"]["backward"].get<double>() > 2 * j["flops"]["forward"].get<double>());
  CHECK(j["kv_cache_bytes"].get<double>() == 4.0 * 4096 * 24 * 1024);
  CHECK(j["memory"]["peak"].get<double>() > j["memory"]["peak_recompute"].get<double>());
  CHECK(j["published_shape"] == true);
}

TEST_CASE("app: account --tier is a table of ten designs and the tier's shapes; --csv has its rows") {
  const TempFolder folder;
  const json j = parsed(app(folder, account({"--tier", "200m", "--json"})));
  CHECK(j.size() == 30);
  const Outcome csv = app(folder, account({"--tier", "200m", "--design", "pre_ln,hc", "--csv"}));
  CHECK(csv.exit == 0);
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 7);
  CHECK_THAT(csv.out,
             Contains("design,n_layers,d_model") && Contains("parameters.total") && Contains("memory.peak"));
  const Outcome table = app(folder, account({"--tier", "200m", "--design", "attn_res"}));
  CHECK_THAT(table.out,
             Contains("attn_res         24   672   28.00    197.73") && Contains("What is counted"));
}

TEST_CASE("app: account says where the exact count differs from the paper's") {
  const TempFolder folder;
  const Outcome o = app(folder, account({"--design", "attn_res", "--layers", "16", "--d-model", "1216"}));
  CHECK_THAT(o.out, Contains("the paper's 8 T d L^2") && Contains("(+9.") && Contains("12 T d L more"));
}

TEST_CASE("app: an estimate names its source and is not called measured") {
  const TempFolder folder;
  const std::vector<std::string> args{"--design", "hc",  "--device", "h200",
                                      "--tokens", "8e9", "--price",  "3"};
  const Outcome o = app(folder, account(args));
  CHECK_THAT(o.out, Contains("not measured") && Contains("data sheet") && Contains("device hours or more"));
  const json j = parsed(app(folder, account(joined(args, {"--json"}))));
  CHECK(j["estimate"]["measured"] == false);
  const double flops = j["flops"]["step"].get<double>();
  CHECK(j["estimate"]["products_s"].get<double>() < flops / 989e12);
  CHECK(j["estimate"]["products_s"].get<double>() > 0.9 * flops / 989e12);
  CHECK(j["estimate"]["cost_at_least"].get<double>() ==
        Approx(3 * j["estimate"]["device_hours_at_least"].get<double>()));
}

TEST_CASE("app: account writes its pictures") {
  const TempFolder folder;
  CHECK(app(folder,
            account({"--tier", "200m", "--design", "pre_ln,hc,moda", "--svg", (folder / "svg").string()}))
            .exit == 0);
  for (const char* name :
       {"flops", "attention_share", "kv_cache", "residual", "memory", "memory_recompute"}) {
    const std::string svg = read_whole((folder / "svg" / (std::string(name) + ".svg")).string());
    CHECK_THAT(svg, Contains("<svg") && Contains(">moda</text>") && Contains("aspect ratio"));
  }
}

TEST_CASE("app: account and shapes refuse bad input in one line, exit 2") {
  const TempFolder folder;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {account({"--d-model", "1008"}),
       "the head size d_model / n_heads is 63, rotary positions need an even one"},
      {account({"--heads", "15"}), "d_model 1024 does not divide into 15 heads"},
      {account({"--kv-heads", "5"}), "16 heads do not divide into 5 KV heads"},
      {account({"--layers", "-3"}), "--layers is -3, needs 1 to 2147483647"},
      {account({"--ffn", "-1"}), "--ffn is -1"},
      {account({"--vocab", "99999999999"}), "--vocab is 99999999999, needs 1 to 2147483647"},
      {account({"--d-model", "536870912"}), "2^63"},
      {account({"--d-model", "99999999999999999999"}), "--d-model"},
      {account({"--seq-len", "0"}), "needs 1 or more"},
      {account({"--design", "pre_lm"}), "there is no design pre_lm; the nearest is pre_ln"},
      {account({"--design", "hc", "--option", "n_stream=2"}), "residual design hc has no option n_stream"},
      {account({"--design", "hc", "--option", "n_streams=two"}), "needs a number"},
      {account({"--tier", "4m"}), "there is no tier 4m; there are 200m"},
      {account({"--device", "abacus"}), "there is no device abacus; there are h200, a100, laptop, measured"},
      {{"shapes", "--budget", "1M"}, "too few"},
      {{"shapes", "--budget", "-4"}, "needs 1 parameter or more"},
      {{"shapes", "--budget", "1e30"}, "2^63"},
      {{"shapes", "--budget", "plenty"}, "needs a number, e.g. 400M"},
      {{"shapes", "--budget", "400M", "--heads", "0", "--head-size", "63"}, "even"},
      {{"shapes", "--budget", "400M", "--design", "hcc", "--count-design"}, "there is no design hcc"}};
  for (const auto& [args, needs] : cases) {
    const Outcome o = app(folder, args);
    INFO(args[args.size() - 2] << " " << args.back() << ": " << o.err);
    CHECK(o.exit == 2);
    CHECK_THAT(o.err, Contains(needs));
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  }
}

TEST_CASE("app: shapes --budget 400M lists the published shapes, and --count-design narrower ones for MoDA") {
  const TempFolder folder;
  const auto widths = [&](std::vector<std::string> more) {
    std::vector<std::pair<int, int>> list;
    const json shapes = parsed(app(folder, joined({"shapes", "--budget", "400M", "--json"}, more)));
    for (const auto& s : shapes["shapes"]) list.push_back({s["n_layers"], s["d_model"]});
    return list;
  };
  const auto all = widths({});
  for (const auto& [L, d] :
       {std::pair{16, 1216}, {20, 1120}, {24, 1024}, {28, 960}, {32, 896}, {42, 800}, {70, 640}})
    CHECK(std::find(all.begin(), all.end(), std::pair{L, d}) != all.end());
  const auto plain = widths({"--layers", "24", "--nearest"}),
             counted = widths({"--layers", "24", "--nearest", "--design", "moda", "--count-design"});
  REQUIRE((plain.size() == 1 && counted.size() == 1));
  CHECK(plain[0].second == 1024);
  CHECK(counted[0].second == 960);
}

TEST_CASE("app: a sweep takes its shapes from a budget") {
  const TempFolder folder;
  const Outcome o = app(folder, joined({"sweep", "--dry-run", "--out", (folder / "sweep").string(),
                                        "sweep.budget=300e3", "sweep.layers=2,6", "sweep.designs=pre_ln"},
                                       {"data.text=" + small_text(folder), "train.seq_len=32",
                                        "train.global_batch_tokens=128", "train.steps=2"}));
  CHECK(o.exit == 0);
  CHECK_THAT(o.out, Contains("pre_ln_2x96") && Contains("pre_ln_6x64"));
  const Outcome both =
      app(folder, {"sweep", "--dry-run", "--out", (folder / "sweep").string(), "sweep.budget=300e3",
                   "sweep.shapes=2x64", "data.text=" + small_text(folder)});
  CHECK(both.exit == 2);
  CHECK_THAT(both.err, Contains("both given"));
}
