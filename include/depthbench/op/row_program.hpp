// Any row program (kernel/program.hpp) as an op on the tape.
//   auto [u, c] = apply(HyperRead<4>{1e-8, 1e-6}, d, {w, s, table, g}, {x});
// params and inputs in the order of the program's leaves; the outputs come back in the same order.
#pragma once
#include <array>

#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/program.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

namespace detail {
template <Role role, class... Ls> double elements(Leaves<Ls...>, int d) {  // of a token
  return (0.0 + ... + (Ls::role == role ? double(Ls::numel(d)) : 0.0));
}
}  // namespace detail

template <class Program, class Device, class R>
auto apply(const Program& program, int d, std::array<Var<Device, R>, Program::params::count> params,
           std::array<Var<Device, R>, Program::tokens::ins> inputs) {
  using Params = typename Program::params;
  using Tokens = typename Program::tokens;
  using Variable = Var<Device, R>;
  Tape<Device, R>& tape = *inputs[0].tape;
  const auto first_leaf = [d]<class L, class... Ls>(Leaves<L, Ls...>) { return std::int64_t(L::numel(d)); };
  const int tokens = int(inputs[0].numel() / first_leaf(Tokens{}));

  const auto check = [&](const char* kind, int i, const Variable& x, std::int64_t needs) {
    if (x.numel() != needs)
      fail<shape_error>("row program: {} {} has shape {}, needs {} elements ({} tokens, width {})", kind, i, x.shape().text(), needs, tokens, d);
  };
  std::array<Variable, Tokens::outs> outs{};
  ProgramArgs<Program, R, R> args{};
  int np = 0, ni = 0, no = 0;
  auto bind = [&]<class L>(L, auto& desc) {
    if constexpr (L::role == Role::Param) {
      check("parameter", np, params[np], std::int64_t(L::numel(d)));
      desc = {params[np++].value(), nullptr};
    } else if constexpr (L::role == Role::In) {
      check("input", ni, inputs[ni], std::int64_t(L::numel(d)) * tokens);
      desc = {inputs[ni++].value(), nullptr, false};
      if constexpr (requires { desc.tokens; }) desc.tokens = tokens;
    } else {
      outs[no] = tape.make({tokens, std::int64_t(L::numel(d))});
      desc = {outs[no++].out(), nullptr};
    }
  };
  for_leaves(args.params, Params{}, bind);
  for_leaves(args.tokens, Tokens{}, bind);
  const double in = detail::elements<Role::In>(Tokens{}, d) * tokens * sizeof(R), out = detail::elements<Role::Out>(Tokens{}, d) * tokens * sizeof(R);
  {
    const auto timing = tape.device().timed(Section::rows, 0, in + out);
    tape.device().template run<Mode::Fwd, R>(program, args, tokens, d);
  }

  tape.record(Tokens::outs, [&tape, program, d, tokens, params, inputs, outs, in, out] {
    ProgramArgs<Program, R, R> back{};
    std::array<R*, Params::count + 1> part{};
    std::array<std::size_t, Params::count + 1> size{};
    int np = 0, ni = 0, no = 0;
    auto bind = [&]<class L>(L, auto& desc) {
      if constexpr (L::role == Role::Param) {
        size[np] = L::numel(d);
        part[np] = tape.acquire_buffer(Device::teams * size[np]);
        desc = {params[np].value(), part[np]};
        ++np;
      } else if constexpr (L::role == Role::In) {
        const auto [g, add] = tape.accumulate(inputs[ni]);
        desc = {inputs[ni].value(), g, add};
        if constexpr (requires { desc.tokens; }) desc.tokens = tokens;
        ++ni;
      } else {
        desc = {nullptr, tape.grad(outs[no])};
        ++no;
      }
    };
    const auto timing = tape.device().timed(Section::rows, 0, 2 * in + out);
    for_leaves(back.params, Params{}, bind);
    for_leaves(back.tokens, Tokens{}, bind);
    tape.device().template run<Mode::Bwd, R>(program, back, tokens, d);
    for (int i = 0; i < np; ++i) {
      const auto [g, add] = tape.accumulate(params[i]);
      if (g) tape.device().fold(part[i], size[i], g, add);
      tape.release_buffer(part[i], Device::teams * size[i]);
    }
  });
  return outs;
}

}  // namespace depthbench
