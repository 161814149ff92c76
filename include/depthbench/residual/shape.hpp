// What a residual design and the model need to know of each other.
#pragma once

namespace depthbench {

struct ResidualShape {
  int d;          // width
  int sublayers;  // K = 2 L
  double norm_eps;
  int kv_width;   // of keys and values of the attention
};

// The matrices of the branches, which a design may start at another scale than the rest.
enum class Weight { q, k, v, out, w1, w2, w3 };

}  // namespace depthbench
