// The other kernel bodies that are meant for the device too: norms forward and backward, the depth softmax,
// cross-entropy, elementwise bodies and AdamW. The same lines as on the CPU, unchanged.
#include "block_primitives.cuh"
#include "depthbench/kernel/adamw.hpp"
#include "depthbench/kernel/cross_entropy.hpp"
#include "depthbench/kernel/depth_softmax.hpp"
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/kernel/program.hpp"
#include "depthbench/kernel/rms_norm.hpp"

namespace db = depthbench;

using Team = BlockTeam<float, 1>;
using Pack = db::Lane<float, 4>;

template <db::Mode M, class Program>
__global__ void program_kernel(Program program, db::ProgramArgs<Program, float, float> args, int tokens, Pack* sums) {
  Team team(512, BlockPrimitives{}, sums);
  db::run_program<M, float>(program, team, args, int(blockIdx.x), tokens, int(gridDim.x), int(blockIdx.x));
}
template <class Program> void both_ways(const Program& program, int tokens) {
  const db::ProgramArgs<Program, float, float> args{};
  program_kernel<db::Mode::Fwd><<<16, 128>>>(program, args, tokens, nullptr);
  program_kernel<db::Mode::Bwd><<<16, 128>>>(program, args, tokens, nullptr);
}
template void both_ways(const db::RmsNorm&, int);
template void both_ways(const db::AddRmsNorm&, int);

template <bool gradient> __global__ void loss_kernel(float* logits, int vocab, const std::int32_t* targets, float* nll) {
  Team team(vocab, BlockPrimitives{}, nullptr);
  const int t = int(blockIdx.x);
  const float x = db::cross_entropy_row<gradient>(team, logits + std::int64_t(t) * vocab, vocab, targets[t], 1.f);
  if (team.leader()) nll[t] = x;
}
template __global__ void loss_kernel<true>(float*, int, const std::int32_t*, float*);
template __global__ void loss_kernel<false>(float*, int, const std::int32_t*, float*);

// One tile of tokens a block: 1 / rms, mixture, dots and pull.
template <class R> __global__ void depth_kernel(const db::DepthSource<R>* sources, const db::DepthUse<R>* uses, int m, R* p,
                                                std::int64_t n, R* o, R* r, R* dots, R* gv) {
  Team team(512, BlockPrimitives{}, nullptr);
  const int first = int(blockIdx.x) * db::depth_tile, last = first + db::depth_tile < n ? first + db::depth_tile : int(n);
  db::depth_inverse_rms(team, sources[0].v, r, R(1e-5), first, last);
  db::depth_mix(team, sources, m, p, n, o, first, last);
  db::depth_row_dots(team, o, sources[0].v, dots, first, last);
  db::depth_pull(team, sources[0].v, r, uses, m, p, n, gv, false, first, last);
}
template __global__ void depth_kernel(const db::DepthSource<float>*, const db::DepthUse<float>*, int, float*, std::int64_t, float*,
                                      float*, float*, float*);

template <class Body> __global__ void packs_kernel(Body body, std::size_t n) {
  const std::size_t i = (std::size_t(blockIdx.x) * blockDim.x + threadIdx.x) * Pack::width;
  if (i < n) body.template at<Pack>(i, int(n - i));
}
template __global__ void packs_kernel(db::SwigluForward<float>, std::size_t);
template __global__ void packs_kernel(db::SwigluBackward<float>, std::size_t);
template __global__ void packs_kernel(db::AddForward<float>, std::size_t);
template __global__ void packs_kernel(db::Product<float>, std::size_t);
template __global__ void packs_kernel(db::Scale<float>, std::size_t);
template __global__ void packs_kernel(db::DepthProbabilities<float>, std::size_t);
template __global__ void packs_kernel(db::DepthPullProbabilities<float>, std::size_t);

template <class R> __global__ void adamw_kernel(db::AdamwStep<R> step, R* p, R* m, R* v, const R* g, std::size_t n) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) step.template at<db::KeepAll>(p[i], m[i], v[i], g[i]);
}
template __global__ void adamw_kernel(db::AdamwStep<float>, float*, float*, float*, const float*, std::size_t);
template __global__ void adamw_kernel(db::AdamwStep<double>, double*, double*, double*, const double*, std::size_t);
