// Where a run is placed: the CPU unless asked, and one clear line for a GPU that this program cannot use.
#include "tests/app/app.hpp"
#include "tests/catch.hpp"

using namespace depthbench_test;
using Catch::Contains;

TEST_CASE("app: a device that is not there is one line and exit code 2, before anything is written") {
  const TempFolder folder;
  const std::string out = (folder / "run").string();
  const auto train = [&](std::vector<std::string> more) {
    return app(folder, joined({"train", "--out", out}, small_run(folder, std::move(more))));
  };
  const bool built = app(folder, {"info"}).out.find("cuda        not built") == std::string::npos;
  const std::vector<std::string> asked[] = {{"--device", "cuda:0"}, {"run.device=cuda:0"}};
  if (!built) {
    for (const auto& more : asked) {
      const Outcome o = train(more);
      CHECK(o.exit == 2);
      CHECK(o.err == "depthbench: run.device is cuda:0: this program was built without CUDA (configure with -DDEPTHBENCH_CUDA=ON)\n");
      CHECK(o.out == "");
      CHECK(!std::filesystem::exists(out));
    }
  }
  const Outcome many = train({"--device", "cuda:999"});
  CHECK(many.exit == 2);
  CHECK(std::count(many.err.begin(), many.err.end(), '\n') == 1);
  for (const std::string device : {"gpu", "cuda:", "cuda:-1", "cuda:1x"}) {
    const Outcome o = train({"run.device=" + device});
    CHECK(o.exit == 2);
    CHECK(o.err == "depthbench: run.device is " + device + ", needs cpu or cuda:0, cuda:1, ...\n");
  }
}

TEST_CASE("app: --device cpu is the default, and info tells of the other") {
  const TempFolder folder;
  const Outcome o = app(folder, joined({"train", "--dry-run", "--device", "cpu"}, small_run(folder)));
  CHECK(o.exit == 0);
  CHECK_THAT(app(folder, {"info"}).out, Contains("\ncuda        "));
  CHECK_THAT(app(folder, {"info", "--json"}).out, Contains("\"cuda\":"));
}
