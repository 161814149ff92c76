// What the analyses do to a design, and what they ask it: blocks exchanged or left out, weights along the residual path.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "depthbench/tape/tape.hpp"

namespace depthbench {

// After block 0 is left out, AttnRes has no running sum. nothing: so it stays; embedding: the embedding counts as the
// running sum too, as in the released DepthBench probe.
enum class FirstRun { nothing, embedding };

// How sublayer k joins the residual path, token by token. Outputs are counted 0 = the embedding, i + 1 = sublayer i.
struct Join {
  // streams: input = read . X,  X' = map X + write y;  X (n, d) starts as n embeddings. For k = K only read is there.
  int streams = 0;
  std::vector<double> read, map, write;  // (N, n)  (N, n, n) rows are destinations  (N, n)
  // or a mixture of sources: each the sum of the outputs first .. last
  struct Source {
    int first, last;
    std::vector<double> weight;  // (N)
  };
  std::vector<Source> sources;

  static Join additive(std::size_t tokens) {  // one stream to which every output is added
    const std::vector<double> one(tokens, 1.0);
    return {1, one, one, one, {}};
  }
};

template <class Device, class R> void exchange(Parameters<Device, R>& p, Parameter<R>& a, Parameter<R>& b) {
  const std::size_t n = std::size_t(a.numel());
  auto& device = p.device();
  R* held = device.memory().template acquire<R>(n);
  device.copy(held, a.value, n);
  device.copy(a.value, b.value, n);
  device.copy(b.value, held, n);
  device.memory().release(held, n * sizeof(R));
}

// Exchanges the parameters of two blocks that have the same name within them and the same shape; others stay.
// but: names that begin so within the block stay too.
template <class Device, class R> void exchange_blocks(Parameters<Device, R>& p, int i, int j, std::string_view but = {}) {
  if (i == j) return;
  const std::string here = fmt::format("blocks.{}.", i), there = fmt::format("blocks.{}.", j);
  for (auto& a : p.list()) {
    if (!a.name.starts_with(here)) continue;
    const std::string rest = a.name.substr(here.size());
    if (!but.empty() && rest.starts_with(but)) continue;
    if (auto* b = p.find(there + rest); b && b->shape == a.shape) exchange(p, a, *b);
  }
}

}  // namespace depthbench
