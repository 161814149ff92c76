// An NVIDIA GPU: who runs kernel bodies there. Everything is launched on one stream and nothing waits, except download and
// read. A file that includes this needs nvcc; no other header does.
//   CudaDevice gpu(0);   Transformer<CudaDevice, float> model(gpu, ...);
// Memory is the device's own, in slabs that are kept (core/memory.hpp): a block that is released may be handed out at once,
// since whoever gets it is later on the stream. A warm step allocates nothing and repeats its addresses.
// Rows are whole 128-bit accesses: d is a multiple of 16 bytes (checked at each launch).
// The number of teams is fixed, so sums have the same bits on GPUs of any size.
#pragma once
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "depthbench/backend/cuda_check.cuh"
#include "depthbench/backend/cuda_entry.cuh"
#include "depthbench/backend/cuda_gemm.cuh"
#include "depthbench/backend/rounded_operand.hpp"
#include "depthbench/backend/staged_copy.hpp"
#include "depthbench/core/memory.hpp"
#include "depthbench/core/profile.hpp"

namespace depthbench {

class CudaDevice {
 public:
  using Prim = cuda::Prim;
  static constexpr bool simt = true, host_memory = false;
  static constexpr int teams = 264;  // partial sums of parameter gradients: two blocks for each of an H100's 132 processors

  // throws cuda_error if there is no such device
  explicit CudaDevice(int ordinal = 0) : memory_(*this) {
    int count = 0;
    const auto status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || ordinal >= count)
      fail<cuda_error>("cuda: device {} is not there, {} found ({})", ordinal, status == cudaSuccess ? count : 0,
                       cudaGetErrorString(status));
    cuda::check(cudaSetDevice(ordinal), "cudaSetDevice");
    cuda::check(cudaGetDeviceProperties(&properties_, ordinal), "cudaGetDeviceProperties");
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    products_on_device_.emplace(memory_.acquire(cuda::MatrixProducts::workspace_bytes));
  }
  ~CudaDevice() {
    cudaStreamSynchronize(stream_);
    products_on_device_.reset();
    cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  static const char* gemm_name() { return "cuBLASLt"; }
  const cudaDeviceProp& properties() const { return properties_; }
  cudaStream_t stream() const { return stream_; }
  void synchronize() {
    if (capturing_) fail<cuda_error>("cuda: work that is captured waits for the device");
    cuda::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }
  Memory<CudaDevice>& memory() { return *pool_; }

  // ---- time by section: with a profile running, every section waits for its kernels
  Profile& profile() { return profile_; }
  class Timed {
   public:
    Timed(CudaDevice& d, Section s, double flops, double bytes) : device_(d), timed_(waited(d), s, flops, bytes) {}
    ~Timed() { if (device_.profile_.on()) cudaStreamSynchronize(device_.stream_); }

   private:
    static Profile& waited(CudaDevice& d) {
      if (d.profile_.on()) d.synchronize();  // and so no capture while a profile runs
      return d.profile_;
    }
    CudaDevice& device_;
    Profile::Timed timed_;
  };
  Timed timed(Section s, double flops, double bytes) { return {*this, s, flops, bytes}; }

  // ---- raw memory, for Memory
  void* allocate(std::size_t bytes) {
    void* p = nullptr;
    if (cudaMalloc(&p, bytes) != cudaSuccess) {
      cudaGetLastError();  // it is reported here, not by the next launch
      fail<error>("out of memory: {} MB for tensors could not be had on the GPU", bytes >> 20);
    }
    return p;
  }
  void deallocate(void* p, std::size_t) { cudaFree(p); }

  // p[i] = value(i), made on the host: initial values.
  template <class T, class F> void generate(T* p, std::size_t n, const F& value) {
    std::vector<T> made(n);
    for (std::size_t i = 0; i < n; ++i) made[i] = value(i);
    upload(p, made.data(), n);
  }
  template <class T> void zero(T* p, std::size_t n) {
    if (n > 0) cuda::check(cudaMemsetAsync(p, 0, n * sizeof(T), stream_), "zero");
  }
  template <class T> void copy(T* to, const T* from, std::size_t n) {
    if (n > 0) cuda::check(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToDevice, stream_), "copy");
  }

  // ---- between the host's memory and tensors
  template <class T> void upload(T* to, const T* from, std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes <= at_most_as_arguments && bytes % sizeof(unsigned) == 0) return send_as_arguments(to, from, bytes);
    if (capturing_) fail<cuda_error>("cuda: {} bytes are uploaded within work that is captured, {} at most can be", bytes, at_most_as_arguments);
    cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "upload");
    synchronize();  // `from` is the caller's again
  }
  template <class T> void download(T* to, const T* from, std::size_t n) {
    if (capturing_) fail<cuda_error>("cuda: {} numbers are read back within work that is captured", n);
    if (n > 0) cuda::check(cudaMemcpyAsync(to, from, n * sizeof(T), cudaMemcpyDeviceToHost, stream_), "download");
    synchronize();
  }
  template <class T> T read(const T* p) {
    T x;
    download(&x, p, 1);
    return x;
  }
  // A list of the host's for bodies to read, while the result lives.
  template <class T> StagedCopy<CudaDevice, T> stage(std::span<const T> list) { return {*this, list}; }

  // ---- work that is kept as a CUDA graph, to be done again (repeat.hpp)
  static constexpr bool replays = true;
  using Pool = Memory<CudaDevice>;
  class Graph {
   public:
    explicit Graph(cudaGraph_t graph) {
      const auto status = cudaGraphInstantiate(&runnable_, graph, 0);
      cudaGraphDestroy(graph);
      cuda::check(status, "cudaGraphInstantiate");
    }
    ~Graph() { if (runnable_) cudaGraphExecDestroy(runnable_); }
    Graph(Graph&& g) noexcept : runnable_(std::exchange(g.runnable_, nullptr)) {}
    Graph& operator=(Graph&&) = delete;
    cudaGraphExec_t runnable() const { return runnable_; }

   private:
    cudaGraphExec_t runnable_{};
  };
  std::size_t memory_peak() const {  // the most that was handed out, pools of captured work included
    std::size_t n = memory_.peak();
    for (const Pool& pool : pools_) n += pool.peak();
    return n;
  }
  Pool* add_pool() { return &pools_.emplace_back(*this); }
  auto use_pool(Pool* pool) {
    struct Used {
      CudaDevice& device;
      Pool* before;
      ~Used() { device.pool_ = before; }
    };
    return Used{*this, std::exchange(pool_, pool)};
  }
  // Nothing is done while work is captured. Relaxed: what a call makes once and did not need before may still be allocated.
  template <class F> Graph capture(F&& work) {
    cuda::check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    capturing_ = true;
    cudaGraph_t graph{};
    try {
      work();
    } catch (...) {
      capturing_ = false;
      cudaStreamEndCapture(stream_, &graph);
      if (graph) cudaGraphDestroy(graph);
      throw;
    }
    capturing_ = false;
    cuda::check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return Graph(graph);
  }
  void replay(const Graph& graph) { cuda::check(cudaGraphLaunch(graph.runnable(), stream_), "cudaGraphLaunch"); }

  // ---- work
  template <Mode M, class S, class Program, class Args>
  void run(const Program& program, const Args& args, int tokens, int d) {
    using Kind = cuda::RowKind<M, S, Program>;
    whole_accesses<Program>(d, sizeof(S));
    const SimtGeometry g = simt_rows<typename Kind::Team, Program>(d, cuda::Prim::warp, M == Mode::Bwd);
    const std::size_t sums_at = (g.shared_bytes + 15) / 16 * 16;
    launch<Program>(Kind{{}, teams, program, args, tokens, d, int(sums_at)}, teams, g.threads, sums_at + g.sums_bytes);
  }
  template <class R, class Body> void for_tiles(int tokens, int tile, int d, const Body& body) {
    using Kind = cuda::TileKind<R, Body>;
    if constexpr (Kind::Team::W > 1) whole_accesses<Body>(d, sizeof(R));
    const SimtGeometry g = simt_tiles<typename Kind::Team>(d, cuda::Prim::warp);
    // One row a tile: a CPU's tiles are for its caches.
    launch<Body>(Kind{{}, tokens, body, tokens, 1, d}, tokens, g.threads, g.shared_bytes);
  }
  template <class R, class Body> void for_packs(std::size_t n, const Body& body) {
    constexpr int W = simt_width_of<R, Body>();
    const auto timing = timed(Section::elementwise, double(n) * double(body.flops()), double(n) * sizeof(R) * double(body.moves()));
    if (n % W == 0) by_thread<Body>(cuda::PackKind<Lane<R, W>, Body>{{}, std::int64_t(n / W), body});
    else by_thread<Body>(cuda::PackKind<Lane<R, 1>, Body>{{}, std::int64_t(n), body});
  }
  template <class Body> void for_elements(std::size_t n, const Body& body) {
    by_thread<Body>(cuda::ElementKind<Body>{{}, std::int64_t(n), body});
  }
  template <class R, class Body> void blocks(int count, const Body& body) {
    launch<Body>(cuda::BlockKind<Body>{{}, count, body}, count, Body::threads, std::size_t(Body::shared_reals) * sizeof(R));
  }
  template <class R> void fold(const R* part, std::size_t n, R* out, bool add) {
    for_elements(n, cuda::FoldPartials<R>{part, out, std::int64_t(n), teams, add});
  }

  // How float products are formed; tf32 rounds their inputs to 10 bits of mantissa, on the way.
  void set_products(Products p) { products_ = p; }
  Products products() const { return products_; }
  // Whether products read bfloat16 arrays, which a caller who needs them twice makes once (tape/product_input.hpp).
  bool reads_bf16() const { return products_ == Products::bf16; }
  void round_rows(const float* from, std::int64_t ld, std::int64_t rows, std::int64_t cols, bfloat16* to) {
    for_elements(std::size_t(rows * cols), cuda::RoundRows<bfloat16>{from, to, cols, ld});
  }
  void allow_tf32(bool yes) { products_on_device_->allow_tf32(yes); }

  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc) { gemm(g, beta, c, ldc, products_); }
  template <class R> void gemm(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc, Products products) {
    if (g.m == 0 || g.n == 0) return;
    const auto timing = timed(Section::gemm, 2.0 * double(g.m) * double(g.n) * double(g.k), 0);
    if constexpr (std::is_same_v<R, float>)
      if (products == Products::bf16)
        return products_on_device_->product(stream_, RoundedOperands<CudaDevice, bfloat16>(*this, g).args(g), beta, c, ldc);
    products_on_device_->product(stream_, g, beta, c, ldc);
  }

 private:
  static constexpr std::size_t at_most_as_arguments = std::size_t{64} << 10;  // beyond, a copy that waits is quicker
  template <class Body> static void whole_accesses(int d, std::size_t element) {
    if (std::size_t(d) * element % 16 != 0)
      fail<shape_error>("cuda: {}: rows of {} numbers of {} bytes, a GPU takes rows of whole 16 bytes", cuda::name_of_type<Body>(), d,
                        element);
  }
  template <class Body, class Kind> void by_thread(const Kind& kind) {
    constexpr int threads = Kind::most_threads;
    const std::int64_t blocks = (kind.count + threads - 1) / threads;
    launch<Body>(kind, std::min<std::int64_t>(blocks, 16 * std::int64_t(properties_.multiProcessorCount)), threads, 0);
  }
  template <class Body, class Kind> void launch(const Kind& kind, std::int64_t blocks, int threads, std::size_t shared) {
    if (blocks == 0) return;
    const auto what = [&] {
      return fmt::format("{}, {} items, {} blocks of {} threads, {} bytes of shared memory", cuda::name_of_type<Body>(), kind.count,
                         blocks, threads, shared);
    };
    if (shared > std::size_t{48} << 10) {
      const auto status = cudaFuncSetAttribute(cuda::cuda_entry<Kind>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared));
      if (status != cudaSuccess) cuda::check(status, what());
    }
    cuda::cuda_entry<Kind><<<unsigned(blocks), unsigned(threads), shared, stream_>>>(kind);
    if (const auto status = cudaGetLastError(); status != cudaSuccess) cuda::check(status, what());
  }
  void send_as_arguments(void* to, const void* from, std::size_t bytes) {
    cuda::StoreWords body;
    for (std::size_t at = 0; at < bytes; at += sizeof body.word) {
      const std::size_t part = std::min(sizeof body.word, bytes - at);
      body.to = reinterpret_cast<unsigned*>(static_cast<std::byte*>(to) + at);
      std::memcpy(body.word, static_cast<const std::byte*>(from) + at, part);
      for_elements(part / sizeof(unsigned), body);
    }
  }

  cudaDeviceProp properties_{};
  cudaStream_t stream_{};
  Memory<CudaDevice> memory_;
  std::deque<Pool> pools_;  // as long as the device: whoever holds a block of theirs may give it back late
  Pool* pool_ = &memory_;
  bool capturing_ = false;
  std::optional<cuda::MatrixProducts> products_on_device_;
  Profile profile_;
  Products products_ = Products::fp32;
};

}  // namespace depthbench
