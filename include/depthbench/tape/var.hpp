// A value on a tape.
#pragma once
#include <cstdint>
#include <span>

#include "depthbench/core/shape.hpp"

namespace depthbench {

template <class Device, class R> class Tape;

// A value on a tape: a handle, copied freely, valid until the tape is past it.
template <class Device_, class R_> struct Var {
  using Device = Device_;
  using R = R_;
  Tape<Device, R>* tape = nullptr;
  int id = -1;

  explicit operator bool() const { return tape != nullptr; }
  const Shape& shape() const { return tape->slot(id).shape; }
  std::int64_t numel() const { return shape().numel(); }
  int rows() const { return int(shape().rows()); }  // seen as a matrix
  int cols() const { return int(shape().cols()); }
  const R* value() const { return tape->slot(id).value; }
  R* out() const { return tape->slot(id).value; }  // for the op that makes the value
  std::span<const R> values() const { return {value(), std::size_t(numel())}; }
};

// Where an op adds the gradient of one of its inputs.
template <class R> struct Accumulate {
  R* g;      // null: no gradient is wanted
  bool add;  // g already holds a sum; false: overwrite
  R beta() const { return add ? R(1) : R(0); }
};

}  // namespace depthbench
