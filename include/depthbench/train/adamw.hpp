// The optimizer: AdamW with clipping by the global norm, over the slabs of all parameters.
//   g *= min(1, clip / (norm + 1e-6)); moments from 0; decay on every parameter that is not declared Decay::no.
#pragma once
#include <cmath>
#include <vector>

#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/adamw.hpp"
#include "depthbench/tape/parameter.hpp"

namespace depthbench {

// Parameters and moments as float, or as the numbers bfloat16 holds, without a float copy: what the released DepthBench runs
// did. Weight decay then does next to nothing, since 1 - lr wd rounds away (docs/bf16.md). The arrays are float all the same.
enum class Storage { fp32, bf16 };

struct AdamwConfig {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double clip = 1.0;  // of the global L2 norm; 0: none
  Storage storage = Storage::fp32;
};

template <class Device, class R> class Adamw {
 public:
  Adamw(Parameters<Device, R>& parameters, const AdamwConfig& config) : parameters_(&parameters), config_(config), size_(parameters.slab_size()) {
    auto& device = parameters.device();
    m_ = device.memory().template acquire<R>(size_);
    v_ = device.memory().template acquire<R>(size_);
    device.zero(m_, size_);
    device.zero(v_, size_);
    for (const auto& p : parameters.list()) {  // runs of neighbours that are treated alike, padding included
      const bool rounded = config.storage == Storage::bf16 && !p.keep_fp32;
      if (runs_.empty() || runs_.back().decay != p.decay || runs_.back().rounded != rounded) runs_.push_back({p.offset, size_, p.decay, rounded});
      if (runs_.size() > 1) runs_[runs_.size() - 2].last = runs_.back().first;
    }
    for (const Run& run : runs_) if (run.rounded) {
      R* p = parameters.value_slab() + run.first;
      device.for_chunks(run.last - run.first, [p](std::size_t first, std::size_t count) {
        for (std::size_t i = first; i < first + count; ++i) p[i] = KeepBf16::of(p[i]);
      });
    }
  }
  ~Adamw() {
    for (R* slab : {m_, v_}) parameters_->device().memory().release(slab, size_ * sizeof(R));
  }
  Adamw(const Adamw&) = delete;
  Adamw& operator=(const Adamw&) = delete;

  // One step with the gradients in the parameters; clears them. Returns the norm before clipping. A norm that is not
  // finite changes nothing: the caller decides.
  double step(double lr) {
    const auto timing = parameters_->device().timed(Section::optimizer, (2 + AdamwStep<R>::flops) * double(size_), 8.0 * double(size_) * sizeof(R));
    parameters_->settle_grads();
    const double norm = grad_norm();
    if (!std::isfinite(norm)) return norm;
    ++steps_;
    const double scale = config_.clip > 0 ? std::min(1.0, config_.clip / (norm + 1e-6)) : 1.0;
    R *p = parameters_->value_slab(), *g = parameters_->grad_slab();
    for (const Run& run : runs_) {
      const AdamwStep<R> body{R(lr), R(config_.beta1), R(config_.beta2), R(config_.eps),
                              R(run.decay == Decay::yes ? lr * config_.weight_decay : 0),
                              R(1 - std::pow(config_.beta1, double(steps_))), R(1 - std::pow(config_.beta2, double(steps_))), R(scale)};
      parameters_->device().for_chunks(run.last - run.first, [&](std::size_t first, std::size_t count) {
        const std::size_t at = run.first + first;
        R *__restrict pp = p + at, *__restrict mm = m_ + at, *__restrict vv = v_ + at;
        const R* __restrict gg = g + at;
        if (run.rounded) for (std::size_t i = 0; i < count; ++i) body.template at<KeepBf16>(pp[i], mm[i], vv[i], gg[i]);
        else for (std::size_t i = 0; i < count; ++i) body.template at<KeepAll>(pp[i], mm[i], vv[i], gg[i]);
      });
    }
    parameters_->clear_grads();
    return norm;
  }

  // L2 norm over all gradients: partial sums of fixed chunks, in order.
  double grad_norm() const {
    const R* g = parameters_->grad_slab();
    constexpr std::size_t chunk = std::size_t{1} << 15;
    std::vector<double> part((size_ + chunk - 1) / chunk);
    parameters_->device().for_chunks(size_, [&](std::size_t first, std::size_t count) {
      double lanes[8] = {};
      std::size_t i = 0;
      for (; i + 8 <= count; i += 8)
        for (std::size_t k = 0; k < 8; ++k) lanes[k] += double(g[first + i + k]) * double(g[first + i + k]);
      for (; i < count; ++i) lanes[i % 8] += double(g[first + i]) * double(g[first + i]);
      double s = 0;
      for (const double x : lanes) s += x;
      part[first / chunk] = s;
    });
    double sum = 0;
    for (const double x : part) sum += x;
    return std::sqrt(sum);
  }

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  // The moments of one parameter, for checkpoints.
  std::span<R> first_moment(const Parameter<R>& p) { return {m_ + p.offset, std::size_t(p.numel())}; }
  std::span<R> second_moment(const Parameter<R>& p) { return {v_ + p.offset, std::size_t(p.numel())}; }

 private:
  struct Run { std::size_t first, last; Decay decay; bool rounded; };
  Parameters<Device, R>* parameters_;
  AdamwConfig config_;
  std::size_t size_;
  R *m_ = nullptr, *v_ = nullptr;
  std::vector<Run> runs_;
  std::int64_t steps_ = 0;
};

}  // namespace depthbench
