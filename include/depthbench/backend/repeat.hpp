// Work that is done again and again on the same memory, as a training step is.
//   Repeat<Device> repeat(device);      repeat([&] { ...launches... });      each time the same launches
// On a device that can (Device::replays) the second time is captured and every later one replays what was captured, as one
// launch: a CUDA graph. Work must then leave to the device all that differs from time to time: what bodies read stands in its
// memory, and nothing is read back. Its memory is a pool of its own, so nobody else is handed what a replay writes to.
// Elsewhere it is a plain call.
#pragma once
#include <optional>
#include <utility>

#include "depthbench/core/error.hpp"

namespace depthbench {

template <class Device> class Repeat {
 public:
  explicit Repeat(Device& device) : device_(&device) {}
  Repeat(const Repeat&) = delete;
  Repeat& operator=(const Repeat&) = delete;

  template <class F> void operator()(F&& work) {
    if constexpr (!Device::replays) {
      work();
    } else if (graph_) {
      device_->replay(*graph_);
    } else {
      if (!pool_) pool_ = device_->add_pool();
      const auto own = device_->use_pool(pool_);
      if (!std::exchange(warm_, true)) return work();  // takes the memory, and whatever else is made once
      const std::size_t before = pool_->in_use();
      graph_.emplace(device_->capture(work));
      if (pool_->in_use() != before)
        fail<error>("repeat: the work keeps {} bytes that a replay would not hand out again", pool_->in_use() - before);
      device_->replay(*graph_);
    }
  }
  // The work has changed: it is captured anew.
  void forget() {
    if constexpr (Device::replays) graph_.reset();
  }
  bool replaying() const {
    if constexpr (Device::replays) return graph_.has_value();
    else return false;
  }

 private:
  Device* device_;
  struct Nothing {};
  template <class D> struct Of { using Graph = Nothing; using Pool = Nothing; };
  template <class D> requires(D::replays) struct Of<D> { using Graph = typename D::Graph; using Pool = typename D::Pool; };
  std::optional<typename Of<Device>::Graph> graph_;
  typename Of<Device>::Pool* pool_ = nullptr;
  bool warm_ = false;
};

}  // namespace depthbench
