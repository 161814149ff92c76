#include "depthbench/kernel/pack.hpp"

#include <vector>

#include "depthbench/core/dtype.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

namespace {

// Writes n numbers a pack at a time between sentinels, as every kernel does with the end of a row.
template <class P, class T> int damage_of_row(int n) {
  constexpr int margin = 2 * P::width;
  std::vector<T> buffer(std::size_t(n) + 2 * margin, T(-77.f)), source(std::size_t(n) + 2 * margin, T(-55.f));
  for (int i = 0; i < n; ++i) source[std::size_t(i + margin)] = T(float(i + 1));
  for (int i = 0; i < n; i += P::width) {
    const P x = load_pack<P>(source.data() + margin + i, n - i);
    for (int k = n - i; k < P::width; ++k) if (x.get(k) != 0) return -1;  // what does not exist reads as zero
    store_pack(buffer.data() + margin + i, x + x, n - i);
  }
  int wrong = 0;
  for (int i = 0; i < int(buffer.size()); ++i) {
    const bool inside = i >= margin && i < margin + n;
    wrong += float(buffer[std::size_t(i)]) != (inside ? 2.f * float(i - margin + 1) : -77.f);
  }
  return wrong;
}

}  // namespace

TEST_CASE("pack: the ends of rows are read and written to the last element and no further", "[kernel]") {
  for (int n = 0; n <= 70; ++n) {
    CAPTURE(n);
    CHECK(damage_of_row<cpu_pack<float>, float>(n) == 0);
    CHECK(damage_of_row<cpu_pack<double>, double>(n) == 0);
    CHECK(damage_of_row<cpu_pack<float>, bfloat16>(n) == 0);
    CHECK(damage_of_row<Lane<float, 4>, float>(n) == 0);
    CHECK(damage_of_row<Lane<float, 8>, bfloat16>(n) == 0);
  }
}

TEST_CASE("pack: arithmetic by channel", "[kernel]") {
  const auto check = []<class P>(P) {
    P a = P::splat(0), b = P::splat(3);
    for (int i = 0; i < P::width; ++i) a.set(i, typename P::real(i + 1));
    int wrong = 0;
    for (int i = 0; i < P::width; ++i) {
      const auto x = typename P::real(i + 1);
      wrong += (a + b).get(i) != x + 3;
      wrong += (a - b).get(i) != x - 3;
      wrong += (a * b).get(i) != x * 3;
      wrong += (a / b).get(i) != x / 3;
    }
    return wrong;
  };
  CHECK(check(cpu_pack<float>::splat(0)) == 0);
  CHECK(check(cpu_pack<double>::splat(0)) == 0);
  CHECK(check(Lane<float, 4>::splat(0)) == 0);
  CHECK(check(Lane<double, 2>::splat(0)) == 0);
}
