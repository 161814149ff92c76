// Runs the app as its users do: a process of its own, its exit code, what it wrote to both outputs.
#pragma once
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/io/temp_folder.hpp"

namespace depthbench_test {

struct Outcome {
  int exit = -1;  // exit code, or 128 + signal for a killed process
  std::string out, err;
};

class Process {
 public:
  Process(const TempFolder& folder, std::vector<std::string> args, const std::string& program = DEPTHBENCH_APP)
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    if (!std::freopen(out_.c_str(), "w", stdout) || !std::freopen(err_.c_str(), "w", stderr)) ::_exit(126);
    args.insert(args.begin(), program);
    std::vector<char*> argv;
    for (auto& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  bool alive() const {
    siginfo_t info{};
    return ::waitid(P_PID, id_t(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  void send(int signal) { ::kill(pid_, signal); }
  std::vector<pid_t> children() const {  // of any of its threads
    std::vector<pid_t> all;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
      std::ifstream in(thread.path() / "children");
      for (pid_t p; in >> p;) all.push_back(p);
    }
    return all;
  }
  Outcome wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_whole(out_),
            read_whole(err_)};
  }

 private:
  pid_t pid_ = -1;
  std::filesystem::path out_, err_;
};

inline Outcome app(const TempFolder& folder, std::vector<std::string> args) {
  return Process(folder, std::move(args)).wait();
}

inline std::size_t lines_of(const std::filesystem::path& file) {
  const std::string text = read_whole(file);
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}
// Waits until a file has so many lines; false if the process that writes it ends before.
inline bool wait_for_lines(const Process& writer, const std::filesystem::path& file, std::size_t lines) {
  while (writer.alive()) {
    if (lines_of(file) >= lines) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A text of 60,000 bytes with some order in it, and the settings of a model that learns from it in a second.
inline std::string small_text(const TempFolder& folder) {
  std::string text;
  const char* words[] = {"the whale ", "a ship ", "on the sea ", "and then ",
                         "he said ",   "it was ", "so white ",   "\n\n"};
  for (unsigned i = 1; text.size() < 60000; i = i * 1664525u + 1013904223u) text += words[i >> 29];
  return folder.write("text.txt", text).string();
}
inline std::vector<std::string> small_run(const TempFolder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> all{"data.text=" + small_text(folder),
                               "data.held_out=0.1",
                               "model.d_model=32",
                               "model.n_layers=2",
                               "train.seq_len=32",
                               "train.global_batch_tokens=128",
                               "train.micro_batch=2",
                               "train.steps=60",
                               "run.threads=1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}
inline std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace depthbench_test
