// SIGINT and SIGTERM: the first one asks to stop after the step at hand, the second one ends the program.
#pragma once

namespace depthbench::app {

struct interrupted {};  // thrown out of a long evaluation

class StopRequests {  // while one lives, the two signals are ours
 public:
  StopRequests();
  ~StopRequests();
  StopRequests(const StopRequests&) = delete;
  StopRequests& operator=(const StopRequests&) = delete;
  bool any() const;
  void throw_if_any() const {
    if (any()) throw interrupted{};
  }
};

}  // namespace depthbench::app
