// What an analysis yields: means over windows of text, with how far they can be trusted.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "depthbench/core/error.hpp"

namespace depthbench {

// The weighted mean of values that came one a window, and the half width of its 95 % interval (normal approximation:
// 1.96 standard errors between windows; NaN for fewer than two). Without values the mean is NaN: "not defined".
class Estimate {
 public:
  void add(double value, double weight = 1) {
    if (weight <= 0) return;
    ++count_;
    weight_ += weight;
    weight2_ += weight * weight;
    const double step = value - mean_;
    mean_ += step * weight / weight_;
    spread_ += weight * step * (value - mean_);
  }
  bool defined() const { return count_ > 0; }
  double mean() const { return defined() ? mean_ : std::numeric_limits<double>::quiet_NaN(); }
  double half_width() const {
    if (count_ < 2) return std::numeric_limits<double>::quiet_NaN();
    const double effective = weight_ * weight_ / weight2_;
    return 1.96 * std::sqrt(spread_ / weight_ / (effective - 1));
  }
  double weight() const { return weight_; }

 private:
  std::int64_t count_ = 0;
  double weight_ = 0, weight2_ = 0, mean_ = 0, spread_ = 0;
};

// A matrix of them; a vector has one row.
class Estimates {
 public:
  Estimates() = default;
  Estimates(int rows, int cols) : rows_(rows), cols_(cols), cells_(std::size_t(rows) * std::size_t(cols)) {}
  int rows() const { return rows_; }
  int cols() const { return cols_; }
  Estimate& operator()(int i, int j) { return cells_[std::size_t(i) * std::size_t(cols_) + std::size_t(j)]; }
  const Estimate& operator()(int i, int j) const { return cells_[std::size_t(i) * std::size_t(cols_) + std::size_t(j)]; }
  std::vector<double> means() const {  // row-major
    std::vector<double> v;
    for (const auto& c : cells_) v.push_back(c.mean());
    return v;
  }
  std::vector<double> half_widths() const {
    std::vector<double> v;
    for (const auto& c : cells_) v.push_back(c.half_width());
    return v;
  }

 private:
  int rows_ = 0, cols_ = 0;
  std::vector<Estimate> cells_;
};

}  // namespace depthbench
