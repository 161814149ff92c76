// The tokens of one pass where the device reads them, with what the embedding's gradient needs of them: their positions sorted
// by token.
//   TokenBatch<Cpu> batch(cpu, n);      batch.fill(tokens, targets);      again and again, at the same addresses
//   n tokens (and targets, or none); ignored_target: no label
//   cost: 20 n bytes on the device, one copy a fill; sorting, n log n, only where a gradient is wanted
#pragma once
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/core/label.hpp"

namespace depthbench {

enum class Groups { no, yes };

template <class Device> class TokenBatch {
 public:
  using List = std::span<const std::int32_t>;

  TokenBatch(Device& device, std::int64_t n) : device_(&device), n_(std::size_t(n)), host_(5 * n_ + 1) {
    if constexpr (!Device::host_memory) placed_ = device.memory().template acquire<std::int32_t>(host_.size());
  }
  ~TokenBatch() { if (placed_) device_->memory().release(placed_, host_.size() * sizeof(std::int32_t)); }
  TokenBatch(const TokenBatch&) = delete;
  TokenBatch& operator=(const TokenBatch&) = delete;

  void fill(List tokens, List targets = {}, Groups groups = Groups::yes) {
    if (tokens.size() != n_ || (!targets.empty() && targets.size() != n_))
      fail<shape_error>("token batch: {} tokens and {} targets, needs {} of each", tokens.size(), targets.size(), n_);
    std::copy(tokens.begin(), tokens.end(), host_.begin());
    if (targets.empty()) std::fill_n(host_.begin() + std::ptrdiff_t(n_), n_, ignored_target);
    else std::copy(targets.begin(), targets.end(), host_.begin() + std::ptrdiff_t(n_));
    if (groups == Groups::yes) sort();
    if constexpr (!Device::host_memory) device_->upload(placed_, host_.data(), groups == Groups::yes ? host_.size() : 2 * n_);
  }

  std::int64_t size() const { return std::int64_t(n_); }
  List host_tokens() const { return {host_.data(), n_}; }
  List host_targets() const { return {host_.data() + n_, n_}; }

  // ---- where the device reads
  const std::int32_t* tokens() const { return data(); }
  const std::int32_t* targets() const { return data() + n_; }
  // Group g is the token token()[g], at the positions order()[start()[g]] .. order()[start()[g + 1] - 1], in their order. Beyond the
  // last group come empty ones: a device that repeats a step does not know how many there are.
  const std::int32_t* order() const { return data() + 2 * n_; }
  const std::int32_t* token() const { return data() + 3 * n_; }
  const std::int32_t* start() const { return data() + 4 * n_; }  // n + 1
  int groups() const { return Device::replays ? int(n_) : count_; }

 private:
  const std::int32_t* data() const { return placed_ ? placed_ : host_.data(); }
  void sort() {
    std::int32_t *order = host_.data() + 2 * n_, *token = order + n_, *start = token + n_;
    std::iota(order, order + n_, 0);
    std::stable_sort(order, order + n_, [this](int a, int b) { return host_[std::size_t(a)] < host_[std::size_t(b)]; });
    count_ = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const std::int32_t t = host_[std::size_t(order[i])];
      if (count_ > 0 && token[count_ - 1] == t) continue;
      token[count_] = t;
      start[count_++] = std::int32_t(i);
    }
    std::fill(start + count_, start + n_ + 1, std::int32_t(n_));
    std::fill(token + count_, token + n_, 0);
  }

  Device* device_;
  std::size_t n_;
  std::vector<std::int32_t> host_;  // tokens, targets, order, token, start
  std::int32_t* placed_ = nullptr;
  int count_ = 0;
};

}  // namespace depthbench
