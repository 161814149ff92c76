// A residual design of your own, trained by the app: ReZero, one scalar a sublayer.   Bachlechner et al. 2020
//
//   x_{k+1} = x_k + a_k S_k(N_k(x_k)),   a_k = 0 at first        x (N, d)   a_k ()
//
//   10_own_design train residual.design=rezero     10_own_design sweep --out DIR sweep.designs=pre_ln,rezero
//   10_own_design account --design pre_ln,rezero   counts it too: FLOPs, bytes, memory
#include <filesystem>
#include <sstream>

#include "depthbench/op/row_program.hpp"
#include "examples/depthbench/app.hpp"

namespace db = depthbench;

struct AddScaled {                          // a row program: written once, run forward and backward
  using params = db::Leaves<db::Param<1>>;  // a
  using tokens = db::Leaves<db::Rows<1>, db::Rows<1>, db::OutRows<1>>;  // x, y -> o
  DB_FN void operator()(auto&, auto& a, auto& x, auto& y, auto& o) const { o = db::same(x) + db::mix(a, y); }
};

template <class Device, class R>
class ReZero final : public db::Residual<Device, R> {
 public:
  using typename db::Residual<Device, R>::Variable;
  using typename db::Residual<Device, R>::State;
  explicit ReZero(const db::DesignOptions& options = {}) { options.expect_only("rezero", {}); }

  void declare(db::Parameters<Device, R>& p, const db::ResidualShape& shape) override {
    eps_ = shape.norm_eps;
    gain_ = db::declare_branch_norms(p, shape);
    for (int k = 0; k < shape.sublayers; ++k)
      a_.push_back(&p.declare(db::sublayer_name(k) + "_rezero.scale", {}, db::Init::constant(0),
                              db::Decay::no, db::Part::residual));
  }
  State open(Variable x) override { return {{x}, nullptr}; }  // (N, d)
  Variable read(State& s, int k) override {
    return db::rms_norm(s.values[0], s.values[0].tape->use(*gain_[k]), eps_);
  }
  void write(State& s, Variable y, int k) override {
    s.values[0] = db::apply<AddScaled, Device, R>({}, y.cols(), {y.tape->use(*a_[k])}, {s.values[0], y})[0];
  }
  Variable close(State& s) override { return s.values[0]; }
  Variable state(State& s, int) override { return s.values[0]; }

 private:
  double eps_ = 0;
  std::vector<db::Parameter<R>*> gain_, a_;  // one a sublayer
};

int main(int argc, char** argv) {
  const auto add = [](auto& designs) { designs.template add_type<ReZero>("rezero"); };  // for training, and for account
  if (argc > 1) return db::app::run(argc, argv, add);
  const std::string out = (std::filesystem::temp_directory_path() / "depthbench_own_design").string();
  std::vector<std::string> words{"train", "--force", "--out", out};  // without arguments: a short run
  std::istringstream settings(
      "residual.design=rezero model.d_model=64 model.n_layers=2 train.seq_len=64 train.steps=60 "
      "train.lr=5e-3 "
      "train.global_batch_tokens=1024 data.held_out=0.01 run.log_every=30");
  for (std::string word; settings >> word;) words.push_back(word);
  return db::app::run(words, add);
}

// Expected output:
// depthbench  ...
// design      rezero
// shape       L = 2 blocks, d = 64, d / L = 32, 2 heads of 32, FFN 176, vocabulary 257
// parameters  133572 = embedding 16448 + backbone 100352 + norm 320 + residual 4 + head 16448
// data        moby_dick.txt: 1.20M tokens in 1 document, 1.19M to train on, 12.1k held out, vocabulary 257
// yardstick   unigram entropy of the held-out part 3.1... nats
// training    60 steps of 1024 tokens (16 windows of 64, 4 at a time), 61.4k tokens, 0.46 a parameter, ...
// rate        peak 0.005 after 6 steps, then a cosine to 0.0005; AdamW, decay 0.1, clip 1
// memory      about ...
// machine     ...
// folder      ...
//
// step  1/60  loss 5...
// step 30/60  loss 2...
// step 60/60  loss 2...
// step 60  validation loss 2...
// finished: 60 steps in ...
