// Designs whose carry is one stream, x (N, d), that is also the depth state and what the head reads.
#pragma once
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class OneStream : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  State open(Variable x) override { return {{x}, nullptr}; }                     // (N, d)
  Variable close(State& carry) override { return carry.values[0]; }
  Variable state(State& carry, int) override { return carry.values[0]; }
  bool replace(State& carry, Variable z) override {
    carry.values[0] = z;
    return true;
  }
};

// One stream to which every sublayer's output is added as it is.
template <class Device, class R> class AddingStream : public OneStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  void write(State& carry, Variable y, int) override { carry.values[0] = add(carry.values[0], y); }
  std::optional<Join> join(State& carry, int) override { return Join::additive(std::size_t(carry.values[0].rows())); }
};

}  // namespace depthbench
