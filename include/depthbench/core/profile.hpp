// Where a step's time goes, and what it had to do: time, FLOPs and bytes, counted by the ops themselves.
// Off, it costs a branch. FLOPs count a multiply-add as two; bytes count each array once per pass that must touch it.
//
// Work is filed under three headings: its section (what kind of work), its part of the model (whose), and the pass.
// Part and pass are scopes: the model opens one around its residual design, the tape opens that of the op again, with
// Pass::backward, when it runs the op's closure. So a matrix product inside a design counts as the design's.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>

namespace depthbench {

enum class Section { gemm, attention, rows, elementwise, loss, optimizer, data };
inline constexpr int section_count = 7;
inline constexpr std::array<const char*, section_count> section_names{"gemm", "attention", "rows", "elementwise", "loss", "optimizer", "data"};

// What a parameter, or work, is counted under.
enum class Part { embedding, backbone, norm, residual, head };
inline constexpr int part_count = 5;
inline constexpr std::array<const char*, part_count> part_names{"embedding", "backbone", "norm", "residual", "head"};

enum class Pass { forward, backward };

struct Tally {
  double time_s = 0, flops = 0, bytes = 0;
  std::int64_t calls = 0;
  Tally& operator+=(const Tally& o) {
    time_s += o.time_s;
    flops += o.flops;
    bytes += o.bytes;
    calls += o.calls;
    return *this;
  }
};

class Profile {
 public:
  void start() { on_ = true; tally_ = {}; }
  void stop() { on_ = false; }
  bool on() const { return on_; }
  const Tally& at(Part part, Pass pass, Section s) const { return tally_[index(part, pass, s)]; }
  Tally operator[](Section s) const {  // of all parts and passes
    Tally sum;
    for (int p = 0; p < part_count; ++p) for (const Pass pass : {Pass::forward, Pass::backward}) sum += at(Part(p), pass, s);
    return sum;
  }

  // ---- scopes
  Part part() const { return part_; }
  class Within {  // until its destruction
   public:
    Within(Profile& p, Part part, Pass pass) : profile_(p), part_(p.part_), pass_(p.pass_) {
      p.part_ = part;
      p.pass_ = pass;
    }
    ~Within() {
      profile_.part_ = part_;
      profile_.pass_ = pass_;
    }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    Profile& profile_;
    Part part_;
    Pass pass_;
  };
  Within within(Part part) { return {*this, part, pass_}; }
  Within within(Pass pass) { return {*this, part_, pass}; }
  Within within(Part part, Pass pass) { return {*this, part, pass}; }

  // ---- work
  void count(Section s, double flops, double bytes) {  // without a time of its own
    if (!on_) return;
    Tally& t = tally_[index(part_, pass_, s)];
    t.flops += flops;
    t.bytes += bytes;
  }
  class Timed {  // counts from its construction to its destruction
   public:
    Timed(Profile& p, Section s, double flops, double bytes) : tally_(p.on_ ? &p.tally_[index(p.part_, p.pass_, s)] : nullptr) {
      if (!tally_) return;
      tally_->flops += flops;
      tally_->bytes += bytes;
      ++tally_->calls;
      start_ = Clock::now();
    }
    ~Timed() {
      if (tally_) tally_->time_s += std::chrono::duration<double>(Clock::now() - start_).count();
    }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    Tally* tally_;
    Clock::time_point start_;
  };

 private:
  static std::size_t index(Part part, Pass pass, Section s) { return (std::size_t(part) * 2 + std::size_t(pass)) * section_count + std::size_t(s); }

  bool on_ = false;
  Part part_ = Part::backbone;
  Pass pass_ = Pass::forward;
  std::array<Tally, part_count * 2 * section_count> tally_{};
};

}  // namespace depthbench
