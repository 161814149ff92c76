// Holds this thread's signals back for a moment: they arrive when the object dies.
//
// oneDNN 2.6's AVX-512 products keep data on the stack where a signal's frame is written: with a handler for SIGALRM every
// 150 us, the heap is corrupted within seconds (tests/backend/signals_test.cpp; OpenBLAS and oneDNN's AVX2 code are not
// affected). A Ctrl-C, a timer or a sampling profiler would do. Holding costs two system calls, well under a microsecond.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace depthbench {

class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace depthbench
