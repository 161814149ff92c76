#include "depthbench/kernel/pack_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"

using namespace depthbench;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// Distance in units of the last place of the exact value's float.
double ulps(float has, double exact) {
  if (std::isnan(has) || std::isinf(has)) return 1e9;
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(double(has) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Visits floats of [low, high]: every step-th representable one, in packs.
template <class F> void for_floats(float low, float high, std::uint32_t step, F f) {
  using P = cpu_pack<float>;
  const auto order = [](float x) {  // monotone integers
    const auto b = std::bit_cast<std::int32_t>(x);
    return b < 0 ? std::int64_t(std::int32_t(0x80000000)) - b : std::int64_t(b);
  };
  const auto value = [](std::int64_t o) {
    return std::bit_cast<float>(std::int32_t(o < 0 ? std::int64_t(std::int32_t(0x80000000)) - o : o));
  };
  for (std::int64_t o = order(low); o <= order(high); o += std::int64_t(step) * P::width) {
    P x = P::splat(high);
    for (int i = 0; i < P::width; ++i) x.set(i, value(std::min(o + std::int64_t(step) * i, order(high))));
    f(x);
  }
}
template <class Pack, class Exact>
double worst_ulps(float low, float high, std::uint32_t step, Pack pack, Exact exact) {
  double worst = 0;
  for_floats(low, high, step, [&](auto x) {
    const auto y = pack(x);
    for (int i = 0; i < x.width; ++i) worst = std::max(worst, ulps(y.get(i), exact(double(x.get(i)))));
  });
  return worst;
}
template <class F>
float at(F f, float x) {
  return f(cpu_pack<float>::splat(x)).get(cpu_pack<float>::width - 1);
}

const auto exp_of = [](auto x) { return math::exp(x); };
const auto tanh_of = [](auto x) { return math::tanh(x); };
const auto sigmoid_of = [](auto x) { return math::sigmoid(x); };

}  // namespace

TEST_CASE("pack math: exp of float, the whole range", "[kernel]") {
  const auto exact = [](double x) { return std::exp(x); };
  CHECK(worst_ulps(-87.336f, 88.722f, 4001, exp_of, exact) < 2);
  CHECK(worst_ulps(-1e-3f, 1e-3f, 4999, exp_of, exact) < 2);
  CHECK(worst_ulps(88.f, 88.722f, 1, exp_of, exact) < 2);   // just below infinity
  CHECK(worst_ulps(-87.336f, -87.f, 1, exp_of, exact) < 2);  // just above zero
  CHECK(at(exp_of, 0.f) == 1.f);
  CHECK(at(exp_of, -0.f) == 1.f);
  CHECK(at(exp_of, 89.f) == inf);
  CHECK(at(exp_of, 1e30f) == inf);
  CHECK(at(exp_of, inf) == inf);
  CHECK(at(exp_of, -88.f) == 0.f);
  CHECK(at(exp_of, -1e30f) == 0.f);
  CHECK(at(exp_of, -inf) == 0.f);
  CHECK(std::isnan(at(exp_of, not_a_number)));
}

TEST_CASE("pack math: tanh of float, the whole range", "[kernel]") {
  const auto exact = [](double x) { return std::tanh(x); };
  CHECK(worst_ulps(-20.f, 20.f, 4001, tanh_of, exact) < 2);
  CHECK(worst_ulps(0.6f, 0.65f, 1, tanh_of, exact) < 2);  // where the two formulas meet
  CHECK(worst_ulps(-0.65f, -0.6f, 1, tanh_of, exact) < 2);
  CHECK(worst_ulps(1e-30f, 1e-3f, 4999, tanh_of, exact) < 2);
  CHECK(at(tanh_of, 0.f) == 0.f);
  for (const float big : {20.f, 50.f, 100.f, 1e30f, inf}) {
    CHECK(at(tanh_of, big) == 1.f);
    CHECK(at(tanh_of, -big) == -1.f);
  }
  CHECK(std::isnan(at(tanh_of, not_a_number)));
}

TEST_CASE("pack math: sigmoid of float", "[kernel]") {
  const auto exact = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(worst_ulps(-87.f, 30.f, 4001, sigmoid_of, exact) < 3);
  CHECK(at(sigmoid_of, 0.f) == 0.5f);
  CHECK(at(sigmoid_of, 200.f) == 1.f);
  CHECK(at(sigmoid_of, inf) == 1.f);
  CHECK(at(sigmoid_of, -200.f) == 0.f);
  CHECK(at(sigmoid_of, -inf) == 0.f);
  CHECK(std::isnan(at(sigmoid_of, not_a_number)));
}

TEST_CASE("pack math: each channel on its own, in float, double and the packs of a GPU thread", "[kernel]") {
  const auto check = []<class P>(P x, double tolerance) {
    const double inputs[] = {-3, -0.1, 0, 0.3, 0.7, 2, 11, -20};
    for (int i = 0; i < P::width; ++i) x.set(i, typename P::real(inputs[i % 8]));
    const P e = math::exp(x), t = math::tanh(x), s = math::sigmoid(x),
            m = math::max(x, P::splat(typename P::real(0.5)));
    double worst = 0;
    for (int i = 0; i < P::width; ++i) {
      const double v = double(x.get(i));
      worst = std::max({worst, std::fabs(e.get(i) / std::exp(v) - 1), std::fabs(t.get(i) - std::tanh(v)),
                        std::fabs(s.get(i) - 1 / (1 + std::exp(-v))),
                        double(m.get(i) != std::max(x.get(i), typename P::real(0.5)))});
    }
    CHECK(worst < tolerance);
  };
  check(cpu_pack<float>::splat(0), 3e-7);
  check(cpu_pack<double>::splat(0), 1e-15);
  check(Lane<float, 4>::splat(0), 3e-7);
  check(Lane<float, 8>::splat(0), 3e-7);
  check(Lane<double, 2>::splat(0), 1e-15);
}

TEST_CASE("pack math: the scalar functions of kernels", "[kernel]") {
  CHECK(math::rsqrt(4.0) == 0.5);
  CHECK(math::reciprocal(4.f) == 0.25f);
  CHECK(math::log(1.0) == 0);
  CHECK(math::sigmoid(0.0) == 0.5);
  CHECK(math::sigmoid(-1000.f) == 0.f);
  CHECK(math::max(2, 3) == 3);
  CHECK(math::max(3, 2) == 3);
}
