// Parameters: declared by name, shape, initial value and decay; stored side by side in one slab each for values,
// gradients and the optimizer's moments, so that an optimizer step is one pass and checkpoints need no per-design code.
#pragma once
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "depthbench/core/memory.hpp"
#include "depthbench/core/profile.hpp"
#include "depthbench/core/rng.hpp"
#include "depthbench/core/shape.hpp"

namespace depthbench {

// How a parameter starts.
struct Init {
  enum class Kind { constant, truncated_normal, table } kind = Kind::constant;
  double value = 0;           // constant: the value; truncated_normal: the standard deviation
  double bound = 3;           // truncated_normal: cut off at +- bound standard deviations
  std::vector<double> table;  // every value, row-major

  static Init constant(double v) { return {Kind::constant, v, 0, {}}; }
  static Init truncated_normal(double std) { return {Kind::truncated_normal, std, 3, {}}; }
  static Init of_table(std::vector<double> t) { return {Kind::table, 0, 0, std::move(t)}; }
};

enum class Decay { yes, no };  // weight decay, or none

template <class R> struct Parameter {
  std::string name;  // as in OLMo-core checkpoints, e.g. blocks.3.attention.w_q.weight
  Shape shape;
  Init init;
  Decay decay = Decay::yes;
  Part part = Part::backbone;
  R* value = nullptr;
  R* grad = nullptr;
  bool keep_fp32 = false;  // float even where parameters are bfloat16
  bool has_grad = false;  // grad holds a sum; otherwise the first contribution overwrites it
  std::size_t offset = 0; // in the slabs

  std::int64_t numel() const { return shape.numel(); }
  std::span<R> values() { return {value, std::size_t(numel())}; }
  std::span<const R> values() const { return {value, std::size_t(numel())}; }
  std::span<const R> grads() const { return {grad, std::size_t(numel())}; }
};

template <class Device, class R> class Parameters {
 public:
  explicit Parameters(Device& device) : device_(&device) {}
  ~Parameters() {
    for (R* slab : {value_, grad_})
      if (slab) device_->memory().release(slab, slab_bytes());
  }
  Parameters(const Parameters&) = delete;
  Parameters& operator=(const Parameters&) = delete;

  // The reference stays valid. Names are unique.
  Parameter<R>& declare(std::string name, Shape shape, Init init, Decay decay = Decay::yes, Part part = Part::backbone) {
    if (value_) fail<config_error>("parameters: {} is declared after allocate()", name);
    if (!index_.emplace(name, list_.size()).second) fail<config_error>("parameters: {} is declared twice", name);
    list_.push_back({std::move(name), shape, std::move(init), decay, part, nullptr, nullptr, false, false, size_});
    constexpr std::size_t line = 64 / sizeof(R);
    size_ += (std::size_t(shape.numel()) + line - 1) / line * line;
    return list_.back();
  }

  // Takes memory for values and gradients, and gives every parameter its initial value: a function of the seed, the
  // parameter's name and the element's index, so that no order of declaration or number of threads changes it.
  void allocate(std::uint64_t seed) {
    if (!value_) {  // a second call starts again, in place
      value_ = static_cast<R*>(device_->memory().acquire(slab_bytes()));
      grad_ = static_cast<R*>(device_->memory().acquire(slab_bytes()));
    }
    device_->zero(value_, size_);
    device_->zero(grad_, size_);
    for (auto& p : list_) {
      p.value = value_ + p.offset;
      p.grad = grad_ + p.offset;
      p.has_grad = false;
      initialize(p, seed);
    }
  }

  std::deque<Parameter<R>>& list() { return list_; }
  const std::deque<Parameter<R>>& list() const { return list_; }
  Parameter<R>* find(std::string_view name) {
    const auto it = index_.find(std::string(name));
    return it == index_.end() ? nullptr : &list_[it->second];
  }
  Parameter<R>& operator[](std::string_view name) {
    if (auto* p = find(name)) return *p;
    fail<config_error>("parameters: there is none named {}", name);
  }

  std::int64_t numel() const {
    std::int64_t n = 0;
    for (const auto& p : list_) n += p.numel();
    return n;
  }
  std::int64_t numel(Part part) const {
    std::int64_t n = 0;
    for (const auto& p : list_) if (p.part == part) n += p.numel();
    return n;
  }
  void clear_grads() { for (auto& p : list_) p.has_grad = false; }
  // A gradient that no op contributed to becomes zero, so that the slab can be read as a whole.
  void settle_grad(Parameter<R>& p) {
    if (!std::exchange(p.has_grad, true)) device_->zero(p.grad, std::size_t(p.numel()));
  }
  void settle_grads() { for (auto& p : list_) settle_grad(p); }

  Device& device() { return *device_; }
  R* value_slab() { return value_; }
  R* grad_slab() { return grad_; }
  std::size_t slab_size() const { return size_; }  // elements, padding between parameters included

 private:
  std::size_t slab_bytes() const { return size_ * sizeof(R); }

  static std::uint64_t name_hash(std::string_view name) {  // FNV-1a: the same on every platform
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const char c : name) h = (h ^ std::uint8_t(c)) * 0x100000001b3u;
    return h;
  }
  void initialize(Parameter<R>& p, std::uint64_t seed) {
    const std::size_t n = std::size_t(p.numel());
    if (p.init.kind == Init::Kind::table && p.init.table.size() != n)
      fail<shape_error>("parameters: the initial table of {} has {} values, needs {}", p.name, p.init.table.size(), n);
    const Rng rng(seed, name_hash(p.name));
    device_->generate(p.value, n, [&](std::size_t i) {
      return R(p.init.kind == Init::Kind::constant ? p.init.value
               : p.init.kind == Init::Kind::table  ? p.init.table[i]
                                                   : p.init.value * rng.truncated_normal(i, p.init.bound));
    });
  }

  Device* device_;
  std::deque<Parameter<R>> list_;
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t size_ = 0;
  R *value_ = nullptr, *grad_ = nullptr;
};

}  // namespace depthbench
