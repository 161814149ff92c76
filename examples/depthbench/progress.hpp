// What a run shows while it goes: one line redrawn in place on a terminal, elsewhere a line every few steps.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "depthbench/train/trainer.hpp"

namespace depthbench::app {

bool is_terminal();  // standard output

class Progress {
 public:
  // every: steps between plain lines, 0: none
  // extra(tokens_per_s): what the terminal line ends with, e.g. the time that a sweep's other runs need
  Progress(std::string label, std::int64_t total_steps, std::int64_t every,
           std::function<std::string(double)> extra = {});
  ~Progress() { clear(); }
  void step(const StepRecord& record, std::int64_t tokens_of_step);
  void validation(std::uint64_t done, std::uint64_t of);
  void clear();  // the line in place goes away; what is printed next starts at its left
  double tokens_per_s() const { return rate_; }  // smoothed over the last seconds

 private:
  void draw(const std::string& line);
  std::string label_;
  std::int64_t total_, every_;
  std::function<std::string(double)> extra_;
  bool terminal_, drawn_ = false;
  double rate_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

// One line, redrawn in place on a terminal, with the share done and the time left; elsewhere a line every half minute.
class Line {
 public:
  explicit Line(std::string label) : label_(std::move(label)), terminal_(is_terminal()) {}
  ~Line() { clear(); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  void show(std::int64_t done, std::int64_t of, const std::string& more = {});
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  bool terminal_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace depthbench::app
