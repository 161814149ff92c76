// Where a step's time goes, and what it had to do: time, FLOPs and bytes by section, counted by the ops themselves.
// Off, it costs a branch. FLOPs count a multiply-add as two; bytes count each array once per pass that must touch it.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>

namespace depthbench {

enum class Section { gemm, attention, rows, elementwise, loss, optimizer, data };
inline constexpr int section_count = 7;
inline constexpr std::array<const char*, section_count> section_names{"gemm", "attention", "rows", "elementwise", "loss", "optimizer", "data"};

struct Tally {
  double time_s = 0, flops = 0, bytes = 0;
  std::int64_t calls = 0;
};

class Profile {
 public:
  void start() { on_ = true; tally_ = {}; }
  void stop() { on_ = false; }
  bool on() const { return on_; }
  const Tally& operator[](Section s) const { return tally_[std::size_t(s)]; }

  class Timed {  // counts from its construction to its destruction
   public:
    Timed(Profile& p, Section s, double flops, double bytes) : profile_(p.on_ ? &p : nullptr), section_(s) {
      if (!profile_) return;
      Tally& t = profile_->tally_[std::size_t(s)];
      t.flops += flops;
      t.bytes += bytes;
      ++t.calls;
      start_ = Clock::now();
    }
    ~Timed() {
      if (profile_) profile_->tally_[std::size_t(section_)].time_s += std::chrono::duration<double>(Clock::now() - start_).count();
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    Profile* profile_;
    Section section_;
    Clock::time_point start_;
  };

 private:
  bool on_ = false;
  std::array<Tally, section_count> tally_{};
};

}  // namespace depthbench
