#include "progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "words.hpp"

namespace depthbench::app {
namespace {

std::size_t columns() {
  winsize w{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}
std::string bar(double share, int width) {
  const int full = int(share * width + 0.5);
  std::string s;
  for (int i = 0; i < width; ++i) s += i < full ? "█" : "░";
  return s;
}

}  // namespace

bool is_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

Progress::Progress(std::string label, std::int64_t total, std::int64_t every,
                   std::function<std::string(double)> extra)
    : label_(std::move(label)),
      total_(total),
      every_(every),
      extra_(std::move(extra)),
      terminal_(is_terminal()) {}

void Progress::step(const StepRecord& r, std::int64_t tokens) {
  const double now = double(tokens) / std::max(r.time_s, 1e-9), weight = std::min(1.0, r.time_s / 4 + 0.02);
  rate_ = rate_ == 0 ? now : 1 / ((1 - weight) / rate_ + weight / now);
  const double left = double(total_ - r.step) * double(tokens) / rate_;
  const bool narrow = terminal_ && columns() < 110;
  const std::string numbers = narrow ? fmt::format("loss {:.3f} grad {:.2f} lr {:.1e} {} tok/s", r.loss,
                                                   r.grad_norm, r.lr, count_text(rate_))
                                     : fmt::format("loss {:.4f}  grad {:.3f}  lr {:.2e}  {} tok/s", r.loss,
                                                   r.grad_norm, r.lr, count_text(rate_));
  if (!terminal_) {
    if (every_ > 0 && (r.step % every_ == 0 || r.step == 1 || r.step == total_)) {
      fmt::print("{}step {:>{}}/{}  {}  ETA {}\n", label_, r.step, fmt::formatted_size("{}", total_), total_,
                 numbers, time_text(left));
      std::fflush(stdout);
    }
    return;
  }
  const auto t = std::chrono::steady_clock::now();
  if (t - last_ < std::chrono::milliseconds(100) && r.step < total_) return;
  last_ = t;
  const double share = double(r.step) / double(total_);
  if (narrow)
    draw(
        fmt::format("{}{} {}/{} {} ETA {}", label_, bar(share, 5), r.step, total_, numbers, time_text(left)));
  else
    draw(fmt::format("{}{} {:3.0f} %  {}/{}  {}  ETA {}{}", label_, bar(share, 16), 100 * share, r.step,
                     total_, numbers, time_text(left), extra_ ? extra_(rate_) : ""));
}

void Progress::validation(std::uint64_t done, std::uint64_t of) {
  const auto t = std::chrono::steady_clock::now();
  if (!terminal_ || t - last_ < std::chrono::milliseconds(100)) return;
  last_ = t;
  draw(fmt::format("{}{} validation {}/{}", label_, bar(double(done) / double(of), 16), done, of));
}

void Progress::draw(const std::string& line) {
  std::string cut;
  std::size_t shown = 0;
  const std::size_t limit = columns() - 1;
  for (std::size_t i = 0; i < line.size() && shown < limit; ++shown) {  // whole characters of UTF-8
    do cut += line[i++];
    while (i < line.size() && (static_cast<unsigned char>(line[i]) & 0xc0) == 0x80);
  }
  fmt::print("\r{}\033[K", cut);
  std::fflush(stdout);
  drawn_ = true;
}

void Line::show(std::int64_t done, std::int64_t of, const std::string& more) {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(30000))) return;
  last_ = now;
  const double share = double(done) / double(of), seconds = std::chrono::duration<double>(now - start_).count();
  const auto text = fmt::format("  {} {:3.0f} %  {}/{}{}  ETA {}", label_, 100 * share, done, of, more, time_text(seconds / share * (1 - share)));
  if (terminal_) fmt::print("\r{}\033[K", text);
  else fmt::print("{}\n", text);
  std::fflush(stdout);
  drawn_ = terminal_;
}
void Line::clear() {
  if (drawn_) fmt::print("\r\033[K");
  std::fflush(stdout);
  drawn_ = false;
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print("\r\033[K");
  std::fflush(stdout);
  drawn_ = false;
}

}  // namespace depthbench::app
