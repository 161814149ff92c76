// A thread block of a GPU, emulated on the CPU: barriers, shuffles and shared memory for the Prim of a SimtTeam, so that
// the lines that run on a GPU run here. Two engines:
//   FiberBlock    one fiber a thread, one after the other. Exact: every fault below is found, in the same place every time.
//   ThreadBlock   one OS thread a thread, for the thread sanitizer, which then looks for missing barriers by itself.
// FiberBlock finds, and reports as block_error with word, threads and lines:
//   a word of shared memory read that nobody wrote, or outside the block's memory;
//   a word written by one thread and touched by another without a barrier between (of the block, or of their warp);
//   a barrier or shuffle that some threads reach and others do not; threads that wait at different lines.
// It does not see: memory order finer than a barrier, bank conflicts, misaligned 128-bit loads, effects between blocks.
#pragma once
#include <array>
#include <atomic>
#include <barrier>
#include <bit>
#include <cstring>
#include <deque>
#include <functional>
#include <source_location>
#include <thread>
#include <type_traits>
#include <vector>

#include "depthbench/backend/fiber.hpp"
#include "depthbench/core/error.hpp"

namespace depthbench {

struct block_error : error {
  using error::error;
};

enum class Schedule { forward, reverse, shuffled };  // in which order the threads of a block take turns

template <int Warp> class FiberBlock {
  using Slot = std::array<std::byte, 24>;  // the fragments of a matrix product

 public:
  static constexpr int warp = Warp;
  static constexpr bool checked = true;

  // threads: whole warps
  FiberBlock(int threads, std::size_t shared_bytes, Schedule schedule = Schedule::forward)
      : schedule_(schedule), memory_((shared_bytes + 7) / 8), words_(shared_bytes / 4), lanes_(std::size_t(threads)) {
    if (threads % Warp != 0) fail<block_error>("emulated block: {} threads are not whole warps of {}", threads, Warp);
    for (int i = 0; i < threads; ++i) fibers_.emplace_back(stack_bytes);
  }
  int size() const { return int(lanes_.size()); }
  std::byte* memory() { return reinterpret_cast<std::byte*>(memory_.data()); }

  // body(rank) on every thread. Shared memory is undefined at first.
  void run(std::function<void(int)> body) {
    body_ = std::move(body);
    problem_.clear();
    ++epoch_;
    for (auto& w : words_) w.writer = -1;
    for (int i = 0; i < size(); ++i) {
      lanes_[std::size_t(i)] = {};
      starts_.push_back({this, i});
      fibers_[std::size_t(i)].start(&FiberBlock::entry, &starts_.back());
    }
    while (turn()) {}
    starts_.clear();
    if (!problem_.empty()) throw block_error(problem_);
  }

  void block_barrier(int rank, std::source_location at) { wait(rank, State::at_block, at); }
  // Every thread of a warp shows a value to the others: a function of whose is wanted, a thread of the same warp, good until
  // the next call. Two sets of slots: one barrier suffices.
  template <class T> auto show(int rank, const T& value, std::source_location at) {
    static_assert(sizeof(T) <= sizeof(Slot));
    Lane& lane = lanes_[std::size_t(rank)];
    const int set = lane.shown++ % 2;
    std::memcpy(lane.slot[set].data(), &value, sizeof value);
    wait(rank, State::at_warp, at);
    return [this, set](int from) {
      T other;
      std::memcpy(&other, lanes_[std::size_t(from)].slot[set].data(), sizeof other);
      return other;
    };
  }
  enum class Access { read, write };
  // `bytes` from byte `at` of shared memory are about to be touched by `rank`.
  void note(int rank, std::size_t at, std::size_t bytes, Access access) {
    for (std::size_t word = at / 4; word < (at + bytes + 3) / 4; ++word) note_word(rank, word, access);
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;
  enum class State { ready, at_warp, at_block, done };
  struct Lane {
    State state = State::ready;
    int shown = 0;
    Slot slot[2] = {};
    unsigned warp_epoch = 0;  // barriers of its warp so far, the block's included
    std::uint_least32_t line = 0;
    const char* file = "";
  };
  // Who touched a word last, and when: all writers and the readers since.
  struct Touch { int rank; unsigned epoch, warp_epoch; };
  struct Word {
    int writer = -1;
    Touch write{};
    std::vector<Touch> reads;
  };
  struct Start { FiberBlock* block; int rank; };

  static void entry(void* p) {
    const Start start = *static_cast<Start*>(p);
    try {
      start.block->body_(start.rank);
    } catch (const std::exception& e) {
      start.block->problem(fmt::format("thread {} threw: {}", start.rank, e.what()));
    }
    start.block->lanes_[std::size_t(start.rank)].state = State::done;
    start.block->fibers_[std::size_t(start.rank)].leave();
  }
  void wait(int rank, State state, std::source_location at) {
    Lane& lane = lanes_[std::size_t(rank)];
    lane.state = state;
    lane.line = at.line();
    lane.file = at.file_name();
    fibers_[std::size_t(rank)].suspend();
  }

  // Lets every thread that can run, run; then opens the barriers that all have reached. False: all are done, or stuck.
  bool turn() {
    bool moved = false;
    for (const int i : order()) {
      if (lanes_[std::size_t(i)].state != State::ready) continue;
      fibers_[std::size_t(i)].resume();
      moved = true;
      if (!problem_.empty()) return false;
    }
    for (int first = 0; first < size(); first += Warp) moved |= open(first, first + Warp, State::at_warp);
    if (open(0, size(), State::at_block)) {
      ++epoch_;
      moved = true;
    }
    if (!problem_.empty()) return false;
    if (!moved) report_stuck();
    return moved;
  }
  bool open(int first, int last, State barrier) {
    for (int i = first; i < last; ++i) if (lanes_[std::size_t(i)].state != barrier) return false;
    const Lane& one = lanes_[std::size_t(first)];
    for (int i = first; i < last; ++i) {
      Lane& lane = lanes_[std::size_t(i)];
      if (lane.line != one.line || std::strcmp(lane.file, one.file) != 0)
        problem(fmt::format("threads at different barriers: thread {} at line {}, thread {} at line {}", first, one.line, i,
                            lane.line));
      lane.state = State::ready;
      ++lane.warp_epoch;
    }
    return true;
  }
  void report_stuck() {
    int done = 0, at_block = 0, at_warp = 0;
    for (const Lane& lane : lanes_) {
      done += lane.state == State::done;
      at_block += lane.state == State::at_block;
      at_warp += lane.state == State::at_warp;
    }
    if (done < size())
      problem(fmt::format("divergent barrier: {} threads wait at a barrier of the block, {} in a shuffle, {} have left", at_block,
                          at_warp, done));
  }
  std::vector<int> order() {
    std::vector<int> o(lanes_.size());
    for (int i = 0; i < size(); ++i) o[std::size_t(i)] = schedule_ == Schedule::reverse ? size() - 1 - i : i;
    if (schedule_ == Schedule::shuffled)
      for (std::size_t i = o.size() - 1; i > 0; --i) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
        std::swap(o[i], o[(random_ >> 33) % (i + 1)]);
      }
    return o;
  }

  void note_word(int rank, std::size_t index, Access access) {
    if (index >= words_.size())
      return stop(rank, fmt::format("shared memory: thread {} touches word {}, there are {}", rank, index, words_.size()));
    Word& w = words_[index];
    const Touch now{rank, epoch_, lanes_[std::size_t(rank)].warp_epoch};
    const auto race = [&](const Touch& then) {  // no barrier between the two
      return then.rank != rank && then.epoch == epoch_ && (then.rank / Warp != rank / Warp || then.warp_epoch == now.warp_epoch);
    };
    const auto complain = [&](const char* what, int other) {
      stop(rank, fmt::format("shared memory: {}, threads {} and {}, word {}, with no barrier between", what, other, rank, index));
    };
    if (access == Access::read) {
      if (w.writer < 0) return stop(rank, fmt::format("shared memory: thread {} reads word {}, which nobody wrote", rank, index));
      if (race(w.write)) return complain("read after write", w.write.rank);
      if (!w.reads.empty() && w.reads.back().epoch != epoch_) w.reads.clear();
      w.reads.push_back(now);
      return;
    }
    if (w.writer >= 0 && race(w.write)) return complain("write after write", w.write.rank);
    for (const Touch& r : w.reads) if (race(r)) return complain("write after read", r.rank);
    w.reads.clear();
    w.writer = rank;
    w.write = now;
  }
  void problem(std::string text) { if (problem_.empty()) problem_ = "emulated block: " + std::move(text); }
  void stop(int rank, std::string text) {  // the thread is left where it stands; run() throws
    problem(std::move(text));
    wait(rank, State::done, {});
  }

  Schedule schedule_;
  std::vector<std::uint64_t> memory_;
  std::vector<Word> words_;
  std::vector<Lane> lanes_;
  std::deque<Fiber> fibers_;
  std::deque<Start> starts_;
  std::function<void(int)> body_;
  std::string problem_;
  unsigned epoch_ = 0;  // barriers of the block so far
  std::uint64_t random_ = 1;
};

template <int Warp> class ThreadBlock {
 public:
  static constexpr int warp = Warp;
  static constexpr bool checked = false;  // the thread sanitizer's work
  enum class Access { read, write };

  ThreadBlock(int threads, std::size_t shared_bytes, Schedule = Schedule::forward)
      : memory_((shared_bytes + 7) / 8), slots_(std::size_t(threads)), all_(threads) {
    for (int i = 0; i < threads; i += Warp) warps_.emplace_back(Warp);
  }
  int size() const { return int(slots_.size()); }
  std::byte* memory() { return reinterpret_cast<std::byte*>(memory_.data()); }
  void run(const std::function<void(int)>& body) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < size(); ++i) threads.emplace_back([&body, i] { body(i); });
  }
  void block_barrier(int, std::source_location) { all_.arrive_and_wait(); }
  template <class T> auto show(int rank, const T& value, std::source_location) {
    auto& own = slots_[std::size_t(rank)];
    static_assert(sizeof(T) <= sizeof own.slot[0]);
    const int set = own.shown++ % 2;
    std::memcpy(own.slot[set], &value, sizeof value);
    warps_[std::size_t(rank / Warp)].arrive_and_wait();
    return [this, set](int from) {
      T other;
      std::memcpy(&other, slots_[std::size_t(from)].slot[set], sizeof other);
      return other;
    };
  }
  void note(int, std::size_t, std::size_t, Access) {}

 private:
  struct Slot { std::byte slot[2][24] = {}; int shown = 0; };
  std::vector<std::uint64_t> memory_;
  std::vector<Slot> slots_;
  std::barrier<> all_;
  std::deque<std::barrier<>> warps_;
};

// Numbers of R in shared memory, as one thread sees them.
template <class R, class Block> struct SharedView {
  Block* block;
  int rank;
  std::size_t first;  // byte
  struct Element {
    const SharedView& view;
    std::size_t at;
    operator R() const {
      view.block->note(view.rank, at, sizeof(R), Block::Access::read);
      R x;
      std::memcpy(&x, view.block->memory() + at, sizeof x);
      return x;
    }
    R operator=(R x) const {
      view.block->note(view.rank, at, sizeof(R), Block::Access::write);
      std::memcpy(view.block->memory() + at, &x, sizeof x);
      return x;
    }
  };
  Element operator[](std::size_t i) const { return {*this, first + i * sizeof(R)}; }
};

// What SimtTeam asks of a place.
template <class Block> struct EmulatedPrim {
  static constexpr int warp = Block::warp;
  using Here = std::source_location;
  Block* block;
  int thread;
  int rank() const { return thread; }
  int size() const { return block->size(); }
  void sync(Here at = Here::current()) const { block->block_barrier(thread, at); }
  template <class T> T shfl_xor(T x, int mask, Here at = Here::current()) const { return block->show(thread, x, at)(thread ^ mask); }
  template <class T> T shfl(T x, int lane, Here at = Here::current()) const { return block->show(thread, x, at)(first_of_warp() + lane); }
  // c (16, 8) += a (16, 16) b (16, 8), spread over the 32 lanes of a warp as PTX's mma.m16n8k16 has them. With g = lane / 4 and
  // t = lane % 4, each word the bf16 of two neighbouring k, the lower k in the lower half:
  //   a[0] row g, k = 2t   a[1] row g + 8, k = 2t   a[2] row g, k = 2t + 8   a[3] row g + 8, k = 2t + 8
  //   b[0] column g, k = 2t   b[1] column g, k = 2t + 8        c[0], c[1] row g, columns 2t, 2t + 1   c[2], c[3] row g + 8
  // A GPU adds in an order of its own; here one product follows the other, in float.
  void mma(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], Here at = Here::current()) const {
    static_assert(warp == 32);
    struct Fragments { std::uint32_t a[4], b[2]; };
    const auto of = block->show(thread, Fragments{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}}, at);
    const int lane = thread % warp, g = lane / 4, column = lane % 4 * 2;
    const auto number = [](std::uint32_t word, int half) { return std::bit_cast<float>(half ? word & 0xffff0000u : word << 16); };
    for (int k = 0; k < 16; ++k) {
      const int holder = first_of_warp() + k % 8 / 2, half = k % 2, high = k / 8;
      const Fragments row = of(holder + 4 * g), columns[2] = {of(holder + 4 * column), of(holder + 4 * (column + 1))};
      for (int i = 0; i < 4; ++i) c[i] += number(row.a[2 * high + i / 2], half) * number(columns[i % 2].b[high], half);
    }
  }
  template <class R> SharedView<R, Block> shared(int offset) const { return {block, thread, std::size_t(offset) * sizeof(R)}; }

 private:
  int first_of_warp() const { return thread / warp * warp; }
};

}  // namespace depthbench
