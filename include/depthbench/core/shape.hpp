// The extents of a tensor, row-major, at most four of them; a scalar has none.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "depthbench/core/error.hpp"

namespace depthbench {

class Shape {
 public:
  static constexpr int max_rank = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> extents) {
    if (extents.size() > max_rank) throw shape_error("Shape: at most 4 axes");
    for (const std::int64_t e : extents) {
      if (e < 0) throw shape_error("Shape: an extent is negative");
      extent_[rank_++] = e;
    }
  }

  constexpr int rank() const { return rank_; }
  constexpr std::int64_t operator[](int axis) const { return extent_[axis]; }
  constexpr std::int64_t numel() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= extent_[i];
    return n;
  }
  // Seen as a matrix: the last axis is the columns, everything before it the rows.
  constexpr std::int64_t cols() const { return rank_ == 0 ? 1 : extent_[rank_ - 1]; }
  constexpr std::int64_t rows() const {
    std::int64_t n = 1;
    for (int i = 0; i + 1 < rank_; ++i) n *= extent_[i];
    return n;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

  std::string text() const {  // "(8, 2, 64)", a scalar is "()"
    std::string s = "(";
    for (int i = 0; i < rank_; ++i) s += fmt::format("{}{}", i ? ", " : "", extent_[i]);
    return s + ")";
  }

 private:
  std::array<std::int64_t, max_rank> extent_{};
  int rank_ = 0;
};

// op: the operation, what: the argument's name in its documentation.
inline void check_shape(const char* op, const char* what, const Shape& has, const Shape& needs) {
  if (!(has == needs)) fail<shape_error>("{}: {} has shape {}, needs {}", op, what, has.text(), needs.text());
}

}  // namespace depthbench
