// The optimizer: AdamW with clipping by the global norm, over the slabs of all parameters.
//   g *= min(1, clip / (norm + 1e-6)); moments from 0; decay on every parameter that is not declared Decay::no.
#pragma once
#include <cmath>
#include <vector>

#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/adamw.hpp"
#include "depthbench/kernel/sum_of.hpp"
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
    part_ = device.memory().template acquire<double>(parts() + 1);
    schedule_ = device.memory().template acquire<AdamwSchedule<R>>(1);
    device.zero(m_, size_);
    device.zero(v_, size_);
    for (const auto& p : parameters.list()) {  // runs of neighbours that are treated alike, padding included
      const bool rounded = config.storage == Storage::bf16 && !p.keep_fp32;
      if (runs_.empty() || runs_.back().decay != p.decay || runs_.back().rounded != rounded) runs_.push_back({p.offset, size_, p.decay, rounded});
      if (runs_.size() > 1) runs_[runs_.size() - 2].last = runs_.back().first;
    }
    for (const Run& run : runs_)
      if (run.rounded) device.for_elements(run.last - run.first, RoundToBf16<R>{parameters.value_slab() + run.first});
  }
  ~Adamw() {
    for (R* slab : {m_, v_}) parameters_->device().memory().release(slab, size_ * sizeof(R));
    parameters_->device().memory().release(part_, (parts() + 1) * sizeof(double));
    parameters_->device().memory().release(schedule_, sizeof *schedule_);
  }
  Adamw(const Adamw&) = delete;
  Adamw& operator=(const Adamw&) = delete;

  // One step with the gradients in the parameters; clears them. Returns the norm before clipping. A norm that is not
  // finite changes nothing: the caller decides.
  double step(double lr) {
    prepare(lr);
    launch();
    return finish();
  }
  // The same in three: what the host knows of the coming step goes to the device; work for the device alone, which a graph can
  // hold; the host learns the norm.
  void prepare(double lr) {
    const auto after = double(steps_ + 1);
    const AdamwSchedule<R> now{R(lr), R(lr * config_.weight_decay), R(1 - std::pow(config_.beta1, after)), R(1 - std::pow(config_.beta2, after))};
    parameters_->device().upload(schedule_, &now, 1);
  }
  void launch() {
    const auto timing = parameters_->device().timed(Section::optimizer, (2 + AdamwStep<R>::flops) * double(size_), 8.0 * double(size_) * sizeof(R));
    parameters_->settle_grads();
    launch_norm();
    R *p = parameters_->value_slab(), *g = parameters_->grad_slab();
    for (const Run& run : runs_) {
      const auto update = [&]<class Keep>(Keep) {
        const std::size_t at = run.first;
        const AdamwRun<R, Keep> all{{R(config_.beta1), R(config_.beta2), R(config_.eps)}, schedule_, run.decay == Decay::yes, config_.clip, norm(),
                                    p + at, m_ + at, v_ + at, g + at};
        parameters_->device().for_elements(run.last - at, all);
      };
      if (run.rounded) update(KeepBf16{}); else update(KeepAll{});
    }
  }
  double finish() {
    const double norm = parameters_->device().read(this->norm());
    if (!std::isfinite(norm)) return norm;
    ++steps_;
    parameters_->clear_grads();
    return norm;
  }

  // L2 norm over all gradients: partial sums of fixed chunks, in order.
  double grad_norm() const {
    launch_norm();
    return parameters_->device().read(norm());
  }

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  // The moments of one parameter, for checkpoints.
  std::span<R> first_moment(const Parameter<R>& p) { return {m_ + p.offset, std::size_t(p.numel())}; }
  std::span<R> second_moment(const Parameter<R>& p) { return {v_ + p.offset, std::size_t(p.numel())}; }

 private:
  static constexpr std::size_t chunk = SquaresOfChunks<R>::chunk;
  std::size_t parts() const { return (size_ + chunk - 1) / chunk; }
  double* norm() const { return part_ + parts(); }
  void launch_norm() const {
    auto& device = parameters_->device();
    device.template for_tiles<double>(int(parts()), 1, int(chunk), SquaresOfChunks<R>{parameters_->grad_slab(), std::int64_t(size_), part_});
    device.template for_tiles<double>(1, 1, int(parts()), SumOf<double, double, SquareRoot>{part_, norm(), {}});
  }

  struct Run { std::size_t first, last; Decay decay; bool rounded; };
  Parameters<Device, R>* parameters_;
  AdamwConfig config_;
  std::size_t size_;
  R *m_ = nullptr, *v_ = nullptr;
  double* part_ = nullptr;  // squares by chunk, then the norm
  AdamwSchedule<R>* schedule_ = nullptr;  // on the device
  std::vector<Run> runs_;
  std::int64_t steps_ = 0;
};

}  // namespace depthbench
