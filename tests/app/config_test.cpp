// The command line and the configuration: who wins over whom, and what is said about mistakes.
#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Contains;
using Catch::StartsWith;

namespace {

// One line on stderr that starts with the program's name.
void fails(const Outcome& o, int code, const std::string& text) {
  CHECK(o.exit == code);
  CHECK_THAT(o.err, StartsWith("depthbench: ") && Contains(text));
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("app: usage errors exit with 2 and one line") {
  const TempFolder folder;
  fails(app(folder, {}), 2, "subcommand is required");
  fails(app(folder, {"trian"}), 2, "there is no command trian; the nearest is train");
  fails(app(folder, {"train", "--foo"}), 2, "--foo");
  fails(app(folder, {"sweep"}), 2, "--out is required");
  fails(app(folder, {"parity"}), 2, "cases is required");
  const Outcome help = app(folder, {"--help"});
  CHECK(help.exit == 0);
  CHECK_THAT(help.out, Contains("sweep") && Contains("parity"));
}

TEST_CASE("app: an unknown key names the nearest one") {
  const TempFolder folder;
  const auto dry = [&](const std::string& setting) {
    return app(folder, joined({"train", "--dry-run"}, small_run(folder, {setting})));
  };
  fails(dry("train.setps=3"), 2, "command line: unknown key train.setps; the nearest is train.steps");
  fails(dry("lr=3"), 2, "unknown key lr; the nearest is train.lr");
  fails(dry("model.n_head=2"), 2, "unknown key model.n_head; the nearest is model.n_heads");
  fails(dry("residual.design=hcc"), 2, "residual.design is hcc, needs one of ");
  fails(dry("residual.design=hcc"), 2, "; the nearest is hc");
  fails(dry("residual.n_streams=2"), 2, "residual design pre_ln has no option n_streams");
  fails(dry("residual.desing=hc"), 2, "residual.desing needs a number");
  fails(dry("sweep.lrs=1"), 2, "sweep.lrs is a key of `depthbench sweep`");
}

TEST_CASE("app: a wrong type says what was expected") {
  const TempFolder folder;
  const auto dry = [&](const std::string& setting) {
    return app(folder, joined({"train", "--dry-run"}, small_run(folder, {setting})));
  };
  fails(dry("train.steps=abc"), 2, "train.steps needs a whole number, has 'abc'");
  fails(dry("train.steps=1.5"), 2, "train.steps needs a whole number, has '1.5'");
  fails(dry("train.steps=99999999999999999999"), 2, "train.steps needs a whole number");
  fails(dry("train.seed=-1"), 2, "train.seed needs a whole number of 0 or more, has '-1'");
  fails(dry("train.lr=nan"), 2, "train.lr needs a number, has 'nan'");
  fails(dry("run.weights=yes"), 2, "run.weights needs true or false, has 'yes'");
  fails(dry("train.activations=kept"), 2, "train.activations needs one of keep, recompute, has 'kept'");
  fails(dry("train.steps"), 2, "'train.steps' is no setting, needs key=value");
  fails(dry("model.n_heads=5"), 2, "d_model 32 does not divide into 5 heads");
  fails(dry("train.global_batch_tokens=100"), 2,
        "batch_tokens 100 is not a whole number of windows of seq_len 32");
}

TEST_CASE("app: defaults, then the file, then the command line") {
  const TempFolder folder;
  small_text(folder);
  const auto file = folder.write(
      "c.toml",
      "[data]\ntext = \"text.txt\"  # beside this file\nheld_out = 0.1\n[model]\nd_model = 48\nn_layers = 3\n"
      "[train]\nsteps = 7\nseq_len = 32\nglobal_batch_tokens = 64\nlr = 1\n[residual]\ndesign = "
      "\"hc\"\nn_streams = 2\n");
  const Outcome o = app(folder, {"train", "--config", file.string(), "--dry-run", "model.n_layers=2"});
  INFO(o.err);
  CHECK(o.exit == 0);
  CHECK_THAT(o.out, Contains("hc with n_streams = 2") && Contains("L = 2 blocks, d = 48") &&
                        Contains("7 steps of 64 tokens") && Contains("peak 1 after"));
  CHECK(!std::filesystem::exists("runs"));

  fails(app(folder, {"train", "--config", folder.write("bad.toml", "[train]\n\nstepz = 3\n").string()}), 2,
        "bad.toml:3: unknown key train.stepz; the nearest is train.steps");
  fails(app(folder, {"train", "--config", folder.write("bad.toml", "[train]\nsteps = \"many\"\n").string()}),
        2, "train.steps needs a whole number, has text ('many')");
  fails(app(folder, {"train", "--config", folder.write("bad.toml", "[train]\nsteps = 3.5\n").string()}), 2,
        "train.steps needs a whole number, has a number ('3.5')");
  fails(app(folder, {"train", "--config", folder.write("bad.toml", "[train]\nlr = [1, 2]\n").string()}), 2,
        "train.lr needs a number, has a list");
  fails(app(folder, {"train", "--config", folder.write("bad.toml", "[train\n").string()}), 2, "bad.toml:1: ");
  fails(app(folder, {"train", "--config", (folder / "none.toml").string()}), 3, "none.toml: cannot be read");
}

TEST_CASE("app: the plan counts parameters by part") {
  const TempFolder folder;
  const Outcome o = app(
      folder, joined({"train", "--dry-run"},
                     small_run(folder, {"residual.design=hc", "model.ffn_hidden=64", "model.n_heads=2"})));
  INFO(o.err);
  REQUIRE(o.exit == 0);
  // V = 257, d = 32, f = 64, L = 2, n = 4:
  // V d | L (4 d^2 + 3 d f) | (2 L + 1) d | 2 L ((n + 2) d + n (n + 2) + 2) | V d
  const long embedding = 257 * 32, backbone = 2 * (4 * 32 * 32 + 3 * 32 * 64), norm = 5 * 32,
             residual = 4 * (6 * 32 + 24 + 2);
  CHECK_THAT(o.out, Contains(std::to_string(2 * embedding + backbone + norm + residual) + " = embedding " +
                             std::to_string(embedding) + " + backbone " + std::to_string(backbone) +
                             " + norm " + std::to_string(norm) + " + residual " + std::to_string(residual) +
                             " + head " + std::to_string(embedding)));
  CHECK_THAT(o.out,
             Contains("60 steps of 128 tokens (4 windows of 32, 2 at a time)") && Contains("after 6 steps"));
}

TEST_CASE("app: missing and bad data exit with 3") {
  const TempFolder folder;
  const auto with = [&](std::vector<std::string> s) {
    return app(folder, joined({"train", "--dry-run"}, s));
  };
  fails(with({"data.text=" + (folder / "none").string()}), 3, "none: there is no such file or folder");
  fails(with({"data.tokens=" + folder.write("t.npy", "\x93NUMPY garbage").string()}), 3, "t.npy");
  fails(with({"data.tokens=" + folder.write("t.u16", "abc").string()}), 3, "t.u16: has 3 bytes of tokens");
  fails(with({"data.text=" + folder.write("empty.txt", "").string()}), 3, "empty.txt: is empty");
  fails(with({"data.text=a", "data.tokens=b"}), 2, "data.text and data.tokens are both given");
}
