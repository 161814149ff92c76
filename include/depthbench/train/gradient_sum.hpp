// The gradient of a step, from its parts: those of this rank one after the other, then over all ranks.
//
// Parts are added in a fixed tree (dist/communicator.hpp), so a step has the same bits on 1, 2, 4, ... ranks as long as it has
// the same parts. Over ranks the gradient goes in buckets, neighbours in the slab; a bucket is sent as soon as the backward pass
// is done with its parameters, while the pass goes on.
#pragma once
#include <algorithm>
#include <vector>

#include "depthbench/dist/communicator.hpp"
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> class GradientSum {
 public:
  GradientSum(Parameters<Device, R>& parameters, Communicator<R>& ranks, std::size_t bucket = std::size_t{1} << 20)
      : parameters_(&parameters), ranks_(&ranks) {
    for (auto& p : parameters.list()) {  // buckets of `bucket` numbers or a little more
      if (buckets_.empty() || p.offset - buckets_.back().first >= bucket) buckets_.push_back({p.offset, 0, {}, 0, false});
      buckets_.back().parameters.push_back(&p);
    }
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      buckets_[b].last = b + 1 < buckets_.size() ? buckets_[b + 1].first : parameters.slab_size();
  }
  ~GradientSum() {
    for (R* slab : saved_) if (slab) parameters_->device().memory().release(slab, parameters_->slab_size() * sizeof(R));
  }
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // The gradient in the parameters is that of part `i` of this rank: puts it aside until its neighbour is there.
  void put_aside(std::int64_t i) {
    const int level = merge(i);
    R*& slab = aside(level);
    parameters_->device().copy(slab, parameters_->grad_slab(), parameters_->slab_size());
    parameters_->clear_grads();
  }
  // The same of the last part, i: the parameters now hold the sum over this rank's parts.
  void last_part(std::int64_t i) {
    for (int level = merge(i); (std::int64_t{1} << level) <= i; ++level)
      if ((i >> level) & 1) add(aside(level));
  }

  // For Tape::backward of what completes the sum of this rank.
  auto send_when_done() {
    for (auto& b : buckets_) {
      b.waiting = b.parameters.size();
      b.sent = false;
    }
    return [this](Parameter<R>& p) {
      Bucket& b = bucket_of(p);
      if (--b.waiting == 0) send(b);
    };
  }
  // Sends what was not sent before; then all is there.
  void finish() {
    if (ranks_->size() == 1) return;
    for (auto b = buckets_.rbegin(); b != buckets_.rend(); ++b) if (!b->sent) send(*b);
    ranks_->wait();
    for (auto& b : buckets_) b.sent = false;
  }

 private:
  struct Bucket {
    std::size_t first, last;  // in the slab
    std::vector<Parameter<R>*> parameters;
    std::size_t waiting;      // of them, for the backward pass to be done with
    bool sent;
  };
  Bucket& bucket_of(const Parameter<R>& p) {
    return *(std::upper_bound(buckets_.begin(), buckets_.end(), p.offset, [](std::size_t at, const Bucket& b) { return at < b.first; }) - 1);
  }
  void send(Bucket& b) {
    for (auto* p : b.parameters) parameters_->settle_grad(*p);
    ranks_->start_sum(parameters_->grad_slab() + b.first, b.last - b.first);
    b.sent = true;
  }
  // Adds the neighbours of part i that wait for it: one a set bit from below. Returns the level of the sum.
  int merge(std::int64_t i) {
    parameters_->settle_grads();
    int level = 0;
    for (; (i >> level) & 1; ++level) add(aside(level));
    return level;
  }
  void add(const R* slab) {
    parameters_->device().template for_packs<R>(parameters_->slab_size(), Scale<R>{slab, parameters_->grad_slab(), R(1), true});
  }
  R*& aside(int level) {
    if (saved_.size() <= std::size_t(level)) saved_.resize(std::size_t(level) + 1, nullptr);
    R*& slab = saved_[std::size_t(level)];
    if (!slab) slab = parameters_->device().memory().template acquire<R>(parameters_->slab_size());
    return slab;
  }

  Parameters<Device, R>* parameters_;
  Communicator<R>* ranks_;
  std::vector<Bucket> buckets_;
  std::vector<R*> saved_;  // by level: sums of 2^level parts
};

}  // namespace depthbench
