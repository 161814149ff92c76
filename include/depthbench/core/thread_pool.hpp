// One pool of threads for everything: kernels, and the tiles of matrix products.
//   pool.run(count, body)   calls body(index, worker) once for every index in [0, count); worker in [0, size())
//   throws what a body throws; error if a body, or another thread, calls run while it is under way
// Indices are handed out as workers become free. Whoever wants the same bits for any number of threads makes `count`
// and the work of an index depend on shapes only.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "depthbench/core/error.hpp"

namespace depthbench {

class ThreadPool {
 public:
  // threads: how many work, the caller among them; 0: as many as the machine has.
  explicit ThreadPool(int threads = 0) {
    if (threads < 0) fail<config_error>("ThreadPool: threads is {}, needs 0 (all) or more", threads);
    const int n = threads > 0 ? threads : std::max(1, int(std::thread::hardware_concurrency()));
    for (int w = 1; w < n; ++w) workers_.emplace_back([this, w] { work(w); });
  }
  ~ThreadPool() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& t : workers_) t.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return int(workers_.size()) + 1; }

  template <class Body> void run(int count, const Body& body) {
    if (count <= 0) return;
    const Running running(*this);
    if (workers_.empty() || count == 1) {
      for (int i = 0; i < count; ++i) body(i, 0);
      return;
    }
    call_ = [](const void* b, int i, int w) { (*static_cast<const Body*>(b))(i, w); };
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    active_.store(int(workers_.size()), std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      generation_.fetch_add(1, std::memory_order_release);
    }
    if (sleepers_.load() > 0) wake_.notify_all();
    take(0);
    for (int spin = 0; active_.load(std::memory_order_acquire) > 0; ++spin)
      if (spin < spins) pause(); else std::this_thread::yield();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  // A second run() would overwrite what the workers of the first are reading.
  struct Running {
    ThreadPool& pool;
    explicit Running(ThreadPool& p) : pool(p) {
      if (pool.running_.exchange(true, std::memory_order_acquire))
        fail<error>("ThreadPool: run() is called inside a run() of the same pool, or by two threads at once; needs a pool of its own");
    }
    ~Running() { pool.running_.store(false, std::memory_order_release); }
  };
  static constexpr int spins = 4000;  // about 50 us: longer than the gap between two kernels, shorter than a pause

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  void take(int worker) {
    try {
      for (int i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) call_(body_, i, worker);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_.store(count_, std::memory_order_relaxed);
    }
  }
  void work(int worker) {
    std::uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; generation_.load(std::memory_order_acquire) == seen && spin < spins; ++spin) pause();
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return stop_ || generation_.load(std::memory_order_relaxed) != seen; });
        sleepers_.fetch_sub(1);
        if (stop_) return;
      }
      ++seen;  // a generation ends only when every worker has seen it
      take(worker);
      active_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::atomic<bool> running_{false};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> next_{0}, active_{0};
  void (*call_)(const void*, int, int) = nullptr;
  const void* body_ = nullptr;
  int count_ = 0;
  std::exception_ptr failure_;
};

}  // namespace depthbench
