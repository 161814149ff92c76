// Rows of a table by index, and the sum of row gradients by index.
#pragma once
#include <cstdint>

namespace depthbench {

// y (n, d) = table[token];  cost: reads and writes n d
template <class Device, class R>
void embedding_forward(Device& device, const std::int32_t* token, std::int64_t n, std::int64_t d, const R* table, R* y) {
  constexpr std::int64_t tile = 64;
  device.pool().run(int((n + tile - 1) / tile), [=](int k, int) {
    const std::int64_t last = (k + 1) * tile < n ? (k + 1) * tile : n;
    for (std::int64_t i = k * tile; i < last; ++i)
      for (std::int64_t c = 0; c < d; ++c) y[i * d + c] = table[token[i] * d + c];
  });
}

// dtable[token_i] += dy_i, i in order. Threads share out the channels, so no two touch one number.
template <class Device, class R>
void embedding_backward(Device& device, const std::int32_t* token, std::int64_t n, std::int64_t d, const R* dy, R* dtable) {
  constexpr std::int64_t width = 64;
  device.pool().run(int((d + width - 1) / width), [=](int k, int) {
    const std::int64_t first = k * width, last = first + width < d ? first + width : d;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = first; c < last; ++c) dtable[token[i] * d + c] += dy[i * d + c];
  });
}

}  // namespace depthbench
