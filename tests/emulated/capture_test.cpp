// Work that is captured once and replayed, as a CUDA graph is. Here a launch is kept with its arguments by value, and while work is
// captured nothing is done. (Whole steps of models: designs_test.cpp.)
#include "depthbench/backend/emulated.hpp"
#include "depthbench/backend/repeat.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

using Device = EmulatedDevice<>;

TEST_CASE("capture: is what runs from the second step on", "[emulated]") {
  Device device;
  double* p = device.memory().acquire<double>(1);
  device.zero(p, 1);
  int calls = 0;
  Repeat<Device> repeat(device);
  const auto work = [&] {
    ++calls;
    device.for_elements(1, [p](std::size_t, std::size_t) { *p += 1; });
  };
  for (int i = 1; i <= 5; ++i) {
    repeat(work);
    CHECK(*p == i);
  }
  CHECK(calls == 2);
  CHECK(repeat.replaying());
  repeat.forget();
  repeat(work);
  CHECK(calls == 3);
  CHECK(*p == 6);
}

TEST_CASE("capture: says what cannot be captured", "[emulated]") {
  Device device;
  double* p = device.memory().acquire<double>(1);
  device.zero(p, 1);
  Repeat<Device> reads(device);
  const auto read = [&] { (void)device.read(p); };
  reads(read);
  CHECK_THROWS_WITH(reads(read), "emulated: 1 numbers are read back within work that is captured");
  CHECK(device.read(p) == 0);  // and is itself again
  Repeat<Device> keeps(device);
  const auto keep = [&] { device.memory().acquire<double>(7); };
  keeps(keep);
  CHECK_THROWS_WITH(keeps(keep), "repeat: the work keeps 128 bytes that a replay would not hand out again");
}

TEST_CASE("capture: finds a step that hangs on the host", "[emulated]") {  // the fault that the first test is there for
  Device device;
  double* p = device.memory().acquire<double>(1);
  device.zero(p, 1);
  Repeat<Device> repeat(device);
  double rate = 0;
  for (int i = 1; i <= 4; ++i) {
    rate = i;
    repeat([&] { device.for_elements(1, [p, rate](std::size_t, std::size_t) { *p += rate; }); });
  }
  CHECK(*p == 1 + 2 + 2 + 2);  // the rate of the captured step, ever after
}
