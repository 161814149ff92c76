// Several ranks train one model: the same bits as one.
#include "tests/catch.hpp"
#include "tests/dist/thread_ranks.hpp"
#include "tests/train/run.hpp"
#include "depthbench/residual/hc.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

struct Trained {
  std::vector<double> losses, norms, values;
  bool operator==(const Trained&) const = default;
};
TrainConfig in_parts(std::int64_t parts, std::int64_t micro_batch = 2) {
  auto c = short_run(5);
  c.batch_tokens = 8 * c.seq_len;  // 8 windows
  c.micro_batch = micro_batch;
  c.gradient_parts = parts;
  return c;
}
template <template <class, class> class Design = PreLn> Trained trained(const TrainConfig& c, int ranks, int* sums = nullptr) {
  ThreadRanks<float> job(ranks);
  std::vector<Trained> all(static_cast<std::size_t>(ranks));
  job.run([&](Communicator<float>& communicator) {
    Run<float, Design> run(c, 1);
    Trainer<Cpu, float> trainer(run.model, run.sampler, c, &communicator);
    Trained& t = all[std::size_t(communicator.rank())];
    while (!trainer.done()) {
      const auto r = trainer.step();
      t.losses.push_back(r.loss);
      t.norms.push_back(r.grad_norm);
    }
    t.values = run.values();
  });
  for (const auto& t : all) REQUIRE(t == all[0]);
  if (sums) *sums = job.sums();
  return all[0];
}

}  // namespace

TEST_CASE("pairwise sums: neighbours first, and a sum of neighbours is a place of the tree", "[dist]") {
  for (const int count : {1, 2, 3, 5, 6, 8}) {
    std::vector<std::string> rows;
    for (int i = 0; i < count; ++i) rows.push_back(std::to_string(i));
    struct Text { std::string s; Text& operator+=(const Text& o) { s = "(" + s + "+" + o.s + ")"; return *this; } };
    std::vector<Text> t;
    for (const auto& r : rows) t.push_back({r});
    add_pairwise(count, 1, [&](int i) { return &t[std::size_t(i)]; });
    const char* expected[] = {"", "0", "(0+1)", "((0+1)+2)", "", "(((0+1)+(2+3))+4)", "(((0+1)+(2+3))+(4+5))", "", "(((0+1)+(2+3))+((4+5)+(6+7)))"};
    CHECK(t[0].s == expected[count]);
  }
}

TEST_CASE("ranks: 1, 2, 4 and 8 train the same bits if the batch has the same parts", "[dist]") {
  const Trained one = trained(in_parts(8, 1), 1);
  for (const int ranks : {2, 4, 8}) CHECK(trained(in_parts(8, 1), ranks) == one);
  CHECK(trained(in_parts(4), 1) == trained(in_parts(4), 4));
  CHECK_FALSE(trained(in_parts(1), 1).values == one.values);  // rounded otherwise: the parts matter
}

TEST_CASE("ranks: the same bits too where blocks are recomputed, with streams, with attention over depth", "[dist]") {
  auto c = in_parts(4);
  c.activations = Activations::recompute;
  CHECK(trained(c, 1) == trained(c, 2));
  CHECK(trained(c, 4) == trained(in_parts(4), 1));
  CHECK(trained<Hc>(in_parts(4), 4) == trained<Hc>(in_parts(4), 1));
  CHECK(trained<AttnRes>(in_parts(4), 4) == trained<AttnRes>(in_parts(4), 1));
}

TEST_CASE("ranks: parts that are no power of two are the same gradient up to rounding", "[dist]") {
  auto c = in_parts(6);
  c.batch_tokens = 12 * c.seq_len;
  const Trained one = trained(c, 1), three = trained(c, 3), two = trained(c, 2);
  CHECK(three == one);  // 2 parts a rank
  for (std::size_t i = 0; i < one.losses.size(); ++i) CHECK(two.losses[i] == Approx(one.losses[i]).epsilon(1e-5));
  c.gradient_parts = 1;
  const Trained plain = trained(c, 1);
  for (std::size_t i = 0; i < one.losses.size(); ++i) CHECK(plain.losses[i] == Approx(one.losses[i]).epsilon(1e-5));
}

TEST_CASE("ranks: buckets cover the slab once, and leave while the backward pass is at work", "[dist]") {
  const auto c = in_parts(2);
  Run<float> run(c, 1);
  struct Recorder final : Communicator<float> {
    int size() const override { return 2; }
    std::vector<std::pair<float*, std::size_t>> sent;
    void start_sum(float* x, std::size_t n) override { sent.push_back({x, n}); }
  } recorder;
  GradientSum<Cpu, float> sum(run.model.parameters(), recorder, 500);
  Tape<Cpu, float> tape(run.cpu);
  std::vector<std::int32_t> tokens(32, 3), targets(32, 5);
  const auto loss = run.model.loss(tape, tokens, targets, 2, 32);
  tape.backward(loss, 1.0f, sum.send_when_done());
  const std::size_t early = recorder.sent.size();
  sum.finish();
  CHECK(early >= recorder.sent.size() - 1);  // every parameter was used: nothing is left but what nothing ever finishes
  CHECK(recorder.sent.size() >= 5);
  CHECK(recorder.sent[0].first > recorder.sent.back().first);  // the head first, the embedding last
  std::vector<int> covered(run.model.parameters().slab_size());
  for (const auto& [x, n] : recorder.sent) for (std::size_t i = 0; i < n; ++i) ++covered[std::size_t(x - run.model.parameters().grad_slab()) + i];
  CHECK(std::count(covered.begin(), covered.end(), 1) == std::ptrdiff_t(covered.size()));
}

TEST_CASE("ranks: a batch that cannot be shared out is refused", "[dist]") {
  auto c = in_parts(3);
  Run<float> plain(in_parts(1), 1);
  CHECK_THROWS_WITH((Trainer<Cpu, float>(plain.model, plain.sampler, c)), Catch::Contains("8 windows") && Catch::Contains("to 3 parts"));
  CHECK_THROWS_WITH(check(in_parts(4), 3), Catch::Contains("gradient_parts is 4, needs a multiple of the 3 ranks"));
}
