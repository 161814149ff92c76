// FLOPs of row programs, counted by running them, against the same by hand.
#include "depthbench/kernel/counted.hpp"
#include "depthbench/kernel/hyper_connection.hpp"
#include "depthbench/kernel/rms_norm.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("counted: numbers") {
  Counter c;
  const Counted x(c), y(c);
  (void)(x + y);
  (void)(Counted(0) + x);        // adding to a zero counts
  (void)(1 * x);                 // a factor 1 does not
  (void)(x / 1);
  (void)(Counted(3) * 2 + 1);    // plain numbers among themselves do not
  (void)math::rsqrt(x);          // a root and a division
  (void)math::sigmoid(x);        // exp, +, /
  (void)math::max(x, y);
  CHECK(c.flops.mixing == 1 + 1 + 2 + 3 + 1);
  CHECK(c.flops.norm == 0);
}

TEST_CASE("counted: an RMSNorm is 4 d, a residual addition before it 2 d") {
  const ProgramFlops norm = program_flops<Mode::Fwd>(RmsNorm{1e-6}, 640), added = program_flops<Mode::Fwd>(AddRmsNorm{1e-6}, 640);
  CHECK(norm.norm == 4 * 640);
  CHECK(norm.mixing == 6);  // 1 / d, eps, the root and its inverse: c x + t twice
  CHECK(added.norm == 4 * 640);
  CHECK(added.mixing == 2 * 640 + 6);
}

TEST_CASE("counted: the read of Hyper-Connections, forward") {
  constexpr int d = 1024, n = 4;
  const ProgramFlops f = program_flops<Mode::Fwd>(HyperRead<n>{1e-8, 1e-6}, d);
  CHECK(f.norm == 2 * n * d + 4 * d);                             // squares of the streams, the branch norm
  const double projections = 2 * n * (n + 2) * d, read = 2 * n * d;
  CHECK(f.mixing > projections + read);
  CHECK(f.mixing < projections + read + 150);                     // tanh, scales and tables of n (n + 2) numbers
}

TEST_CASE("counted: the adjoint of a mix is a mix and as many dot products") {
  constexpr int d = 512, n = 4;
  const double forward = program_flops<Mode::Fwd>(HyperWrite<n>{}, d).mixing, back = program_flops<Mode::Bwd>(HyperWrite<n>{}, d).mixing;
  CHECK(forward == 2 * n * (n + 1) * d);
  CHECK(back == Approx(2 * forward).epsilon(0.02));
}

TEST_CASE("counted: the direct count of a width is the line through two and three channels") {
  const HyperAdvance<2> program{1e-8, 1e-6};
  for (const int d : {2, 5, 9}) {
    const ProgramFlops line = program_flops<Mode::Bwd>(program, d), direct = detail::count_program<Mode::Bwd>(program, d);
    CHECK(line.mixing == direct.mixing);
    CHECK(line.norm == direct.norm);
  }
}
