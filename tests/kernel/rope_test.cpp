#include "depthbench/kernel/rope.hpp"

#include <complex>

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("rope: a pair (j, j + h/2) turns by t theta^(-2j/h), against the clock", "[kernel]") {
  for (const int h : {2, 6, 16}) {
    const double theta = 500;
    const RopeTable<double> table(40, h, theta);
    for (const int t : {0, 1, 7, 39}) {
      std::vector<double> x, y(std::size_t(h), 99);
      for (int j = 0; j < h; ++j) x.push_back(0.3 * j - 1);
      rotate<Turn::forward>(x.data(), y.data(), h, table.cos_at(t), table.sin_at(t), 2.0);
      for (int j = 0; j < h / 2; ++j) {
        const auto turned = 2.0 * std::complex(x[std::size_t(j)], x[std::size_t(j + h / 2)]) *
                            std::polar(1.0, t * std::pow(theta, -2.0 * j / h));
        CHECK(y[std::size_t(j)] == Approx(turned.real()).margin(1e-14));
        CHECK(y[std::size_t(j + h / 2)] == Approx(turned.imag()).margin(1e-14));
      }
      std::vector<double> back(std::size_t(h), 99);
      rotate<Turn::back>(y.data(), back.data(), h, table.cos_at(t), table.sin_at(t), 0.5);
      for (int j = 0; j < h; ++j) CHECK(back[std::size_t(j)] == Approx(x[std::size_t(j)]).margin(1e-14));
      rotate<Turn::forward>(x.data(), x.data(), h, table.cos_at(t), table.sin_at(t), 2.0);  // in place
      CHECK(x == y);
    }
  }
}

TEST_CASE("rope: position 0 does not turn; float rounds the double's angle", "[kernel]") {
  const RopeTable<float> table(5000, 4, 10000);
  CHECK(table.cos_at(0)[0] == 1.f);
  CHECK(table.sin_at(0)[1] == 0.f);
  CHECK(table.cos_at(4999)[0] == float(std::cos(4999.0)));
  CHECK(table.sin_at(4999)[1] == float(std::sin(4999.0 * 0.01)));
  CHECK_THROWS_AS(RopeTable<float>(10, 5, 10000), shape_error);
  CHECK_THROWS_WITH(RopeTable<float>(10, 5, 10000), "rope: the head size is 5, needs an even number");
}
