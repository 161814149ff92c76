// Ranks that are threads of this process: f(communicator) runs on each.
#pragma once
#include <barrier>
#include <deque>
#include <thread>
#include <vector>

#include "depthbench/dist/communicator.hpp"

namespace depthbench_test {

template <class R> class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : meet_(size), x_(std::size_t(size)), host_(std::size_t(size)) {}

  template <class F> void run(const F& f) {
    std::deque<Member> members;
    for (int r = 0; r < int(x_.size()); ++r) members.emplace_back(*this, r);
    std::vector<std::jthread> threads;
    for (auto& m : members) threads.emplace_back([&f, &m] { f(m); });
  }
  int sums() const { return sums_; }  // of arrays, begun by rank 0

 private:
  struct Member final : depthbench::Communicator<R> {
    ThreadRanks& all;
    int me;
    Member(ThreadRanks& a, int r) : all(a), me(r) {}
    int rank() const override { return me; }
    int size() const override { return int(all.x_.size()); }
    void start_sum(R* x, std::size_t n) override {
      if (me == 0) ++all.sums_;
      all.x_[std::size_t(me)].assign(x, x + n);
      all.meet_.arrive_and_wait();
      if (me == 0) depthbench::add_pairwise(size(), n, [&](int r) { return all.x_[std::size_t(r)].data(); });
      all.meet_.arrive_and_wait();
      std::copy(all.x_[0].begin(), all.x_[0].end(), x);
      all.meet_.arrive_and_wait();
    }
    void sum(std::span<double> x) override {
      all.host_[std::size_t(me)].assign(x.begin(), x.end());
      all.meet_.arrive_and_wait();
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = 0;
        for (const auto& h : all.host_) x[i] += h[i];
      }
      all.meet_.arrive_and_wait();
    }
  };

  std::barrier<> meet_;
  std::vector<std::vector<R>> x_;
  std::vector<std::vector<double>> host_;
  int sums_ = 0;
};

}  // namespace depthbench_test
