// How large states and gradients are, block by block, while a model trains: what shows a design that drowns its deep blocks.
//   LayerStatistics s;
//   trainer.step(&s);                                // the same bits as step()
#pragma once
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "depthbench/tape/parameter.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

struct LayerStatistics {
  std::vector<double> state_rms;  // of z_0 .. z_L: root of the mean square over the tokens of the step's first micro-batch
  std::vector<double> grad_norm;  // of block 0 .. L-1: L2 over all its parameters, of the whole step, before clipping
};

// "blocks.12.attention.w_q.weight" -> 12; nothing for what no block owns.
inline std::optional<int> block_of(std::string_view parameter) {
  constexpr std::string_view prefix = "blocks.";
  if (!parameter.starts_with(prefix)) return std::nullopt;
  int block = 0;
  std::size_t i = prefix.size();
  for (; i < parameter.size() && i < prefix.size() + 6 && std::isdigit(static_cast<unsigned char>(parameter[i])); ++i) block = 10 * block + (parameter[i] - '0');
  if (i == prefix.size() || i == parameter.size() || parameter[i] != '.') return std::nullopt;
  return block;
}

template <class Device, class R> double sum_of_squares(Device& device, const R* x, std::size_t n) {
  std::vector<R> host(n);
  device.download(host.data(), x, n);
  double sum = 0;
  for (const R v : host) sum += double(v) * double(v);
  return sum;
}

template <class Device, class R> double root_mean_square(Var<Device, R> x) {
  return std::sqrt(sum_of_squares(x.tape->device(), x.value(), std::size_t(x.numel())) / double(x.numel()));
}

// A parameter whose gradient nothing contributed to counts as 0.
template <class Device, class R> std::vector<double> grad_norm_by_block(const Parameters<Device, R>& parameters, Device& device, int n_layers) {
  std::vector<double> norm(std::size_t(n_layers), 0.0);
  for (const auto& p : parameters.list())
    if (const auto l = block_of(p.name); l && *l < n_layers && p.has_grad) norm[std::size_t(*l)] += sum_of_squares(device, p.grad, std::size_t(p.numel()));
  for (double& n : norm) n = std::sqrt(n);
  return norm;
}

}  // namespace depthbench
