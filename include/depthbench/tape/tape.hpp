// Reverse mode: a list of what was done, read backwards.
//
//   Tape<Cpu, float> tape(cpu);
//   auto y = linear(tape.use(x), tape.use(w));        // every op records one closure
//   tape.backward(cross_entropy(y, targets));          // runs them in reverse; gradients add up in the parameters
//
// The device is a template policy and not a run-time switch: headers compiled by g++ and by nvcc would otherwise hold
// different inline functions under one name.
//
// Memory. Values and gradients come from the device's free lists (core/memory.hpp); the tape gives a value back when
// the backward pass is past the op that made it, so a step repeats its addresses and a warm step allocates nothing.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "depthbench/tape/parameter.hpp"
#include "depthbench/tape/product_input.hpp"
#include "depthbench/tape/var.hpp"

namespace depthbench {

template <class Device, class R> class Tape {
 public:
  using Variable = Var<Device, R>;

  explicit Tape(Device& device) : device_(&device) {}
  ~Tape() { clear(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Device& device() { return *device_; }
  bool recording() const { return recording_; }

  // ---- leaves
  Variable use(Parameter<R>& p) {
    if (!p.value) fail<tape_error>("use: parameter {} has no value yet (call allocate())", p.name);
    return add({p.shape, p.value, p.grad, &p.has_grad, Owner::none, true, false, -1, &p});
  }
  // Data without a gradient; it must outlive the tape's use of it.
  Variable constant(const R* data, Shape shape) { return add({shape, const_cast<R*>(data), nullptr, nullptr, Owner::none, false}); }
  // Data of the caller whose gradient is wanted: `grad` receives it (backward adds if *has_grad).
  Variable leaf(const R* data, R* grad, bool* has_grad, Shape shape) {
    return add({shape, const_cast<R*>(data), grad, has_grad, Owner::none, true});
  }

  // ---- for ops
  Variable make(Shape shape) {
    R* p = device_->memory().template acquire<R>(std::size_t(shape.numel()));
    return add({shape, p, nullptr, nullptr, Owner::tape, true});
  }
  // x under another shape: the same numbers and the same gradient.
  Variable alias(Variable x, Shape shape) {
    Slot s{shape, slots_[x.id].value, nullptr, nullptr, Owner::none, true};
    s.base = base_of(x);
    return add(std::move(s));
  }
  // f is called once, in the backward pass, after everything that used the op's outputs; `outputs` is how many of
  // the newest values the op made (values for its own use included). An op none of whose outputs received a gradient
  // is passed over, unless it pulls its gradient from elsewhere.
  enum class Pull { no, yes };
  template <class F> void record(int outputs, F f, Pull pull = Pull::no) {
    if (!recording_) return;
    nodes_.push_back({int(slots_.size()) - outputs, pull, device_->profile().part(), std::make_unique<Closure<F>>(std::move(f))});
  }
  // x for matrix products: rounded by the first that asks, and kept with x for those to come.
  Operand<R> operand(Variable x) {
    Slot& s = slots_[base_of(x)];
    if (!s.product_input) s.product_input = std::make_unique<Input>(*device_, s.value, std::size_t(s.shape.numel()));
    return s.product_input->operand();
  }
  // The same of a gradient or a buffer, while the result lives.
  using Input = ProductInput<Device, R>;
  Input input(const R* p, std::int64_t n) { return Input(*device_, p, std::size_t(n)); }
  const R* grad(Variable y) {  // of an output, zero if nothing flowed into it
    const auto [g, add] = accumulate(y);
    if (!add) device_->zero(g, std::size_t(y.numel()));
    return g;
  }
  bool has_grad(Variable y) { return *slots_[base_of(y)].has_grad; }
  Accumulate<R> accumulate(Variable x) {
    Slot& s = slots_[base_of(x)];
    if (!s.wants_grad) return {nullptr, false};
    if (!s.grad) s.grad = device_->memory().template acquire<R>(std::size_t(s.shape.numel()));
    return {s.grad, std::exchange(*s.has_grad, true)};
  }
  // The same for ops that cannot leave a gradient out: that of a constant goes to a buffer nobody reads.
  Accumulate<R> accumulate_always(Variable x) {
    Slot& s = slots_[base_of(x)];
    if (s.wants_grad) return accumulate(x);
    if (!s.grad) s.grad = acquire_buffer(std::size_t(s.shape.numel()));
    return {s.grad, std::exchange(s.own_has_grad, true)};
  }
  // The same two for ops that only ever add: the gradient is zero before the first of them comes.
  R* sum_of_grads(Variable x) { return zeroed(accumulate(x), x); }  // null: none is wanted
  R* sum_of_grads_always(Variable x) { return zeroed(accumulate_always(x), x); }
  // The gradient of y so far, now the caller's to release (with release_buffer); y has none any more.
  R* take_grad(Variable y) {
    R* g = const_cast<R*>(grad(y));
    slots_[base_of(y)].grad = nullptr;
    *slots_[base_of(y)].has_grad = false;
    return g;
  }
  // The same, released when the last copy of the pointer goes.
  std::shared_ptr<R> adopt_grad(Variable y) { return shared(take_grad(y), std::size_t(y.numel())); }
  std::shared_ptr<R> shared_buffer(std::size_t n) { return shared(acquire_buffer(n), n); }
  R* acquire_buffer(std::size_t n) { return device_->memory().template acquire<R>(n); }
  void release_buffer(R* p, std::size_t n) { device_->memory().release(p, n * sizeof(R)); }
  // A copy of x's numbers for the caller.
  std::vector<R> host(Variable x) {
    std::vector<R> v(std::size_t(x.numel()));
    device_->download(v.data(), x.value(), v.size());
    return v;
  }
  // Lives until clear(): state that several ops of a step share.
  void keep(std::shared_ptr<void> state) { kept_.push_back(std::move(state)); }

  // ---- backward
  // Runs everything recorded, in reverse, from loss (a scalar) with d loss / d loss = seed.
  void backward(Variable loss, R seed = R(1)) {
    backward_since({0, 0}, loss, seed);
    clear();
  }
  // The same; calls done(p) for each parameter as soon as the pass is past its last use. Not for passes that recompute: what
  // they have thrown away may yet use the parameter.
  using Done = std::function<void(Parameter<R>&)>;
  void backward(Variable loss, R seed, const Done& done) {
    std::unordered_map<Parameter<R>*, int> uses;
    for (const Slot& s : slots_) if (s.parameter) ++uses[s.parameter];
    const auto watch = [&](Parameter<R>& p) { if (--uses[&p] == 0) done(p); };
    struct Watched {
      Tape& tape;
      Watched(Tape& t, Done f) : tape(t) { tape.released_ = std::move(f); }
      ~Watched() { tape.released_ = {}; }
    } watched(*this, watch);
    backward(loss, seed);
  }
  // The same for what was recorded after the mark, all of which is then forgotten; what was there before stays.
  struct Mark { int nodes, slots; };
  Mark mark() const { return {int(nodes_.size()), int(slots_.size())}; }
  void backward_since(Mark mark, Variable loss, R seed = R(1)) {
    if (loss.tape != this) fail<tape_error>("backward: the loss is a value of another tape");
    if (int(nodes_.size()) == mark.nodes) fail<tape_error>("backward: nothing was recorded (already run, or inside no_grad)");
    if (loss.numel() != 1) fail<shape_error>("backward: the loss has shape {}, needs a scalar", loss.shape().text());
    const auto [g, add] = accumulate(loss);
    device_->upload(g, &seed, 1);
    unwind(mark.nodes);
    release_slots(mark.slots);
  }
  // Forgets everything; parameters and their gradients stay.
  void clear() {
    while (!nodes_.empty()) nodes_.pop_back();
    release_slots(0);
    kept_.clear();
  }

  // Nothing is recorded while the result lives; values stay.
  class Paused {
   public:
    explicit Paused(Tape& tape) : tape_(tape), was_(std::exchange(tape.recording_, false)) {}
    ~Paused() { tape_.recording_ = was_; }
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

   private:
    Tape& tape_;
    bool was_;
  };
  [[nodiscard]] Paused pause() { return Paused(*this); }

  // Runs f() without recording and keeps only the values it returns (a range of Variables).
  template <class F> auto no_grad(F&& f) {
    const Paused paused(*this);
    const int first = int(slots_.size());
    auto kept = f();
    keep_only(first, kept);
    return kept;
  }

  // Runs f(): a vector of Variables, keeping none of its inner values; the backward pass runs it again to get them.
  // The second run repeats the first bit by bit, so gradients are the same bits as without.
  template <class F> std::vector<Variable> recompute(F f) {
    if (!recording_) return no_grad(f);
    const int first = int(slots_.size());
    std::vector<Variable> out = no_grad(f);
    record(int(slots_.size()) - first, [this, f, out]() mutable {
      const int base = int(nodes_.size()), top = int(slots_.size());
      const std::vector<Variable> again = f();
      for (std::size_t i = 0; i < out.size(); ++i) if (base_of(again[i]) >= top && has_grad(out[i])) {
        Slot& s = slots_[base_of(again[i])];  // f made it: its gradient is what the rest of the tape left in out[i]
        s.grad = take_grad(out[i]);
        *s.has_grad = true;
      }
      unwind(base);
      release_slots(top);
    }, Pull::yes);
    return out;
  }

 private:
  friend Variable;
  enum class Owner { none, tape };
  struct Slot {
    Shape shape;
    R* value;
    R* grad;
    bool* has_grad;
    Owner owner;
    bool wants_grad;
    bool own_has_grad = false;
    int base = -1;  // the value this one is an alias of
    Parameter<R>* parameter = nullptr;  // that this value is
    std::unique_ptr<Input> product_input{};
  };
  struct AnyClosure {
    virtual ~AnyClosure() = default;
    virtual void run() = 0;
  };
  template <class F> struct Closure final : AnyClosure {
    F f;
    explicit Closure(F g) : f(std::move(g)) {}
    void run() override { f(); }
  };
  struct Node {
    int first_output;
    Pull pull;
    Part part;  // whose work it is, for the profile
    std::unique_ptr<AnyClosure> closure;
  };

  R* zeroed(Accumulate<R> a, Variable x) {
    if (a.g && !a.add) device_->zero(a.g, std::size_t(x.numel()));
    return a.g;
  }
  std::shared_ptr<R> shared(R* p, std::size_t n) {
    return {p, [memory = &device_->memory(), n](R* q) { memory->release(q, n * sizeof(R)); }};
  }
  Slot& slot(int id) { return slots_[id]; }
  int base_of(Variable x) const { return slots_[x.id].base < 0 ? x.id : slots_[x.id].base; }
  Variable add(Slot s) {
    slots_.push_back(std::move(s));
    Slot& q = slots_.back();
    if (!q.has_grad) q.has_grad = &q.own_has_grad;
    return {this, int(slots_.size()) - 1};
  }
  template <class Vars> void keep_only(int first, const Vars& kept) {
    std::vector<bool> wanted(slots_.size() - std::size_t(first));
    for (const Variable& v : kept) if (base_of(v) >= first) wanted[std::size_t(base_of(v) - first)] = true;
    for (int i = first; i < int(slots_.size()); ++i) if (!wanted[std::size_t(i - first)]) release(slots_[i]);
  }
  void unwind(int base) {
    while (int(nodes_.size()) > base) {
      Node node = std::move(nodes_.back());
      nodes_.pop_back();
      bool any = node.pull == Pull::yes;
      const int last = int(slots_.size());
      for (int i = node.first_output; i < last && !any; ++i) any = slots_[i].owner == Owner::tape && *slots_[i].has_grad;
      if (any) {
        const auto scope = device_->profile().within(node.part, Pass::backward);
        node.closure->run();
      }
      release_slots(node.first_output);
    }
  }
  void release_slots(int first) {
    while (int(slots_.size()) > first) {
      release(slots_.back());
      slots_.pop_back();
    }
  }
  void release(Slot& s) {
    if (auto* p = std::exchange(s.parameter, nullptr); p && released_) released_(*p);
    s.product_input.reset();
    if (!s.wants_grad && s.grad) release_buffer(std::exchange(s.grad, nullptr), std::size_t(s.shape.numel()));
    if (s.owner != Owner::tape) return;
    if (s.value) release_buffer(s.value, std::size_t(s.shape.numel()));
    if (s.grad) release_buffer(s.grad, std::size_t(s.shape.numel()));
    s.value = s.grad = nullptr;
  }
  Device* device_;
  std::deque<Slot> slots_;  // a deque: has_grad points into it
  std::vector<Node> nodes_;
  std::vector<std::shared_ptr<void>> kept_;
  bool recording_ = true;
  Done released_;  // of every value that is a parameter, during a backward pass that is watched
};

}  // namespace depthbench
