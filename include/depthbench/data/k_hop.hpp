// k-hop induction: a task whose depth is known.                      Sanford, Hsu, Telgarsky 2024, arXiv 2402.09268, definition 4
//
//   letters x_1 .. x_{T-1};  hop(i) = the place after the last x_j = x_i with j < i;  answer x at hop applied k times, from every i
//
//   A Transformer needs about log2 k blocks, and they are enough. Samples are made anew, never repeated: with a fixed set of a
//   thousand even deep models only memorise. Compare models with the same number of heads: heads buy depth here.
//   tokens (T): the number of hops first (letters + k), then T - 1 letters.   targets: the answer, ignored_target where a hop leads
//   nowhere and at the first place.   cost: O(T k)
#pragma once
#include <span>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/core/rng.hpp"
#include "depthbench/data/sampler.hpp"

namespace depthbench {

struct KHop {
  int letters = 4, max_hops = 4, seq = 32;  // seq = T

  int vocab_size() const { return letters + max_hops + 1; }

  // Sample number `index` of a seed, with hops drawn from 0 .. max_hops (hops < 0) or given.
  //   tokens, targets (T)
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, int hops = -1) const {
    if (letters < 2 || max_hops < 0 || seq < 3) fail<config_error>("k_hop: {} letters, {} hops, {} tokens; needs 2, 0 and 3 or more", letters, max_hops, seq);
    if (std::int64_t(tokens.size()) != seq || std::int64_t(targets.size()) != seq || hops > max_hops)
      fail<shape_error>("k_hop: room for {} tokens and {} targets, needs {} each; {} hops of at most {}", tokens.size(), targets.size(), seq, hops, max_hops);
    constexpr std::uint64_t purpose = 0x6b686f70;  // "khop"
    const Rng rng = Rng(seed).split(purpose).split(index);
    const int k = hops >= 0 ? hops : int(rng.below(0, std::uint64_t(max_hops) + 1));
    tokens[0] = letters + k;
    targets[0] = ignored_target;
    std::vector<int> last(std::size_t(letters), -1), next(std::size_t(seq), -1);
    for (int i = 1; i < seq; ++i) {
      const auto x = std::int32_t(rng.below(std::uint64_t(i), std::uint64_t(letters)));
      tokens[std::size_t(i)] = x;
      if (int& before = last[std::size_t(x)]; before >= 0) next[std::size_t(i)] = before + 1;
      last[std::size_t(x)] = i;
      int at = i;
      for (int h = 0; h < k && at >= 0; ++h) at = next[std::size_t(at)];
      targets[std::size_t(i)] = at < 0 ? ignored_target : tokens[std::size_t(at)];
    }
  }
};

}  // namespace depthbench
