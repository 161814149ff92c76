// Emulated blocks with faults, for tests that want them found.
#pragma once
#include <string>
#include <vector>

#include "depthbench/backend/emulated_block.hpp"

namespace depthbench_test {

// Runs f(prim) on `threads` threads; the message of the fault, or "" if there is none.
template <class Block, class F>
std::string fault_of(int threads, std::size_t shared_bytes, F f, depthbench::Schedule schedule = depthbench::Schedule::forward) {
  Block block(threads, shared_bytes, schedule);
  try {
    block.run([&](int rank) { f(depthbench::EmulatedPrim<Block>{&block, rank}); });
  } catch (const depthbench::block_error& e) {
    return e.what();
  }
  return "";
}

// The kernel's barrier number `drop` (counted by every thread) is missing.
template <class Prim> struct WithoutOneBarrier : Prim {
  int drop;
  int* passed;  // by thread
  WithoutOneBarrier(Prim p, int drop_, std::vector<int>& counts) : Prim(p), drop(drop_), passed(counts.data() + p.rank()) {}
  void sync(typename Prim::Here at = Prim::Here::current()) const {
    if ((*passed)++ != drop) Prim::sync(at);
  }
};

}  // namespace depthbench_test
