#include "signals.hpp"

#include <csignal>
#include <initializer_list>

namespace depthbench::app {
namespace {

volatile std::sig_atomic_t asked = 0;  // a signal handler can reach nothing else

void on_signal(int) { asked = 1; }
void set(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

StopRequests::StopRequests() {
  asked = 0;
  for (const int s : {SIGINT, SIGTERM}) set(s, on_signal, int(SA_RESETHAND) | SA_RESTART);
}
StopRequests::~StopRequests() {
  for (const int s : {SIGINT, SIGTERM}) set(s, SIG_DFL, 0);
}
bool StopRequests::any() const { return asked != 0; }

}  // namespace depthbench::app
