// The label of a position that has none.
#pragma once
#include <cstdint>

namespace depthbench {

inline constexpr std::int32_t ignored_target = -100;  // the convention of PyTorch's cross-entropy

}  // namespace depthbench
