// Depth states on the host: the numbers that the analyses of geometry compare.
#pragma once
#include <cmath>

#include "depthbench/analysis/sample.hpp"
#include "depthbench/model/transformer.hpp"

namespace depthbench {

// Runs f() without recording and gives back all that it took from the device.
template <class Device, class R, class F> void without_trace(Tape<Device, R>& tape, const F& f) {
  tape.no_grad([&] {
    f();
    return std::vector<Var<Device, R>>{};
  });
}

// f(i) for i in [0, count) on the host, on the device's threads if it has some.
template <class Device, class R, class F> void on_host(Tape<Device, R>& tape, int count, const F& f) {
  if constexpr (requires { tape.device().pool(); }) tape.device().pool().run(count, [&](int i, int) { f(i); });
  else for (int i = 0; i < count; ++i) f(i);
}

// A pass before each block: where blocks are left out, others go on from there. f(pass) before every block, and at the end.
template <class Device, class R, class F>
std::vector<ForwardPass<Device, R>> passes_before_blocks(ForwardPass<Device, R>& pass, const F& f) {
  std::vector<ForwardPass<Device, R>> at;
  for (; !pass.done(); pass.step()) {
    at.push_back(pass);
    f(pass);
  }
  f(pass);
  return at;
}

// A state, row by row: (N, width); width is d, or n d where there are streams.
template <class R> struct HostState {
  std::vector<R> x;
  std::size_t width = 0;
  const R* row(std::size_t t) const { return x.data() + t * width; }
  std::size_t rows() const { return x.size() / width; }
};
template <class Device, class R> HostState<R> host_state(Var<Device, R> z) {
  return {z.tape->host(z), std::size_t(z.cols())};
}

template <class R> double dot(const R* a, const R* b, std::size_t n) {
  double s[8] = {};  // eight sums: they fill a vector register, in one fixed order
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) for (std::size_t k = 0; k < 8; ++k) s[k] += double(a[i + k]) * double(b[i + k]);
  for (; i < n; ++i) s[0] += double(a[i]) * double(b[i]);
  return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

}  // namespace depthbench
