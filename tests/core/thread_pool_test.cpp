#include "depthbench/core/thread_pool.hpp"

#include <numeric>
#include <string>

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("thread pool: every index once, every worker within bounds", "[core]") {
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (const int count : {0, 1, 2, 3, 17, 1000}) {
      std::vector<int> seen(std::size_t(count) + 1);  // plain numbers: the thread sanitizer would see a clash
      std::atomic<int> outside{0};
      pool.run(count, [&](int i, int worker) {
        ++seen[std::size_t(i)];
        outside += worker < 0 || worker >= threads;
      });
      CHECK(std::accumulate(seen.begin(), seen.end(), 0) == count);
      CHECK(std::count(seen.begin(), seen.end(), 1) == count);
      CHECK(outside == 0);
    }
  }
  CHECK(ThreadPool().size() >= 1);
  CHECK_THROWS_AS(ThreadPool(-1), config_error);
  CHECK_THROWS_WITH(ThreadPool(-1), "ThreadPool: threads is -1, needs 0 (all) or more");
}

TEST_CASE("thread pool: a negative count is no work", "[core]") {
  ThreadPool pool(2);
  int calls = 0;
  pool.run(-3, [&](int, int) { ++calls; });
  CHECK(calls == 0);
}

TEST_CASE("thread pool: no worker takes part twice at once", "[core]") {
  ThreadPool pool(4);
  std::vector<int> inside(4);
  std::atomic<int> clashes{0};
  for (int round = 0; round < 20; ++round) pool.run(64, [&](int, int worker) {
    clashes += ++inside[std::size_t(worker)] != 1;
    --inside[std::size_t(worker)];
  });
  CHECK(clashes == 0);
}

TEST_CASE("thread pool: what a run wrote is seen by the caller and by the next run", "[core]") {
  ThreadPool pool(3);
  std::vector<int> values(100, 0);
  int wrong = 0;
  for (int round = 1; round <= 3000; ++round) {  // many small runs, back to back
    pool.run(100, [&](int i, int) { ++values[std::size_t(i)]; });
    if (round % 100 == 0) for (const int v : values) wrong += v != round;
  }
  CHECK(wrong == 0);
}

TEST_CASE("thread pool: wakes up after a pause", "[core]") {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the workers spin
    pool.run(10, [&](int, int) { ++calls; });
  }
  CHECK(calls == 200);
}

TEST_CASE("thread pool: an exception reaches the caller, and the pool goes on", "[core]") {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      const int bad = round % 10;
      CHECK_THROWS_WITH(pool.run(10,
                                 [&](int i, int) {
                                   if (i == bad) fail<numeric_error>("index {} is bad", i);
                                 }),
                        "index " + std::to_string(bad) + " is bad");
      std::atomic<int> calls{0};
      pool.run(10, [&](int, int) { ++calls; });
      CHECK(calls == 10);
    }
    CHECK_THROWS_AS(pool.run(100, [](int, int) { throw std::bad_alloc(); }),
                    std::bad_alloc);  // many at once: one of them
    CHECK_THROWS_AS(pool.run(1, [](int, int) { throw std::bad_alloc(); }), std::bad_alloc);
  }
}

TEST_CASE("thread pool: an exception of a pool inside a pool passes through both", "[core]") {
  ThreadPool outer(2);
  std::atomic<int> calls{0};
  CHECK_THROWS_WITH(outer.run(2, [&](int i, int) {
    ThreadPool inner(2);
    inner.run(4, [&](int j, int) {
      ++calls;
      if (i == 1 && j == 2) fail<numeric_error>("inner {} of outer {}", j, i);
    });
  }), "inner 2 of outer 1");
  CHECK(calls >= 1);
}

TEST_CASE("thread pool: a run inside a run of the same pool is an error on any number of threads", "[core]") {
  const char* said = "ThreadPool: run() is called inside a run() of the same pool, or by two threads at once; needs a pool of its own";
  for (const int threads : {1, 2, 4}) for (const int outer : {1, 5}) for (const int inner : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> calls{0};
    CHECK_THROWS_WITH(pool.run(outer, [&](int, int) { pool.run(inner, [&](int, int) { ++calls; }); }), said);
    CHECK(calls == 0);
    CHECK_NOTHROW(pool.run(outer, [&](int, int) { pool.run(0, [&](int, int) { ++calls; }); }));  // no work is no run
    pool.run(7, [&](int, int) { ++calls; });
    CHECK(calls == 7);
  }
}

TEST_CASE("thread pool: a run by another thread meanwhile is an error", "[core]") {
  ThreadPool pool(2);
  std::atomic<bool> inside{false}, tried{false}, refused{false};
  std::thread other([&] {
    while (!inside) std::this_thread::yield();
    try {
      pool.run(2, [](int, int) {});
    } catch (const error&) {
      refused = true;
    }
    tried = true;
  });
  pool.run(2, [&](int, int) {
    inside = true;
    while (!tried) std::this_thread::yield();
  });
  other.join();
  CHECK(refused);
}

TEST_CASE("thread pool: pools of different threads do not disturb each other", "[core]") {
  const auto work = [](int threads, long& sum) {
    ThreadPool pool(threads);
    std::vector<long> part(50);
    for (int round = 0; round < 200; ++round) pool.run(50, [&](int i, int) { part[std::size_t(i)] += i; });
    for (const long p : part) sum += p;
  };
  long a = 0, b = 0;
  std::thread other([&] { work(2, b); });
  work(3, a);
  other.join();
  CHECK(a == 200 * 49 * 25);
  CHECK(b == a);
}

TEST_CASE("thread pool: pools that never work, or end at once, end", "[core]") {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    if (i % 2) pool.run(3, [](int, int) {});
  }
  SUCCEED();
}
