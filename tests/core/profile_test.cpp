#include "depthbench/core/profile.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("profile: work is filed under part, pass and section") {
  Profile p;
  p.count(Section::gemm, 1, 1);  // off: nothing
  p.start();
  { const Profile::Timed t(p, Section::gemm, 10, 100); }
  {
    const auto residual = p.within(Part::residual);
    { const Profile::Timed t(p, Section::gemm, 20, 200); }
    {
      const auto back = p.within(Pass::backward);
      p.count(Section::gemm, 40, 400);
      const auto norm = p.within(Part::norm);
      p.count(Section::rows, 80, 800);
      CHECK(p.part() == Part::norm);
    }
    CHECK(p.part() == Part::residual);
  }
  CHECK(p.part() == Part::backbone);
  CHECK(p.at(Part::backbone, Pass::forward, Section::gemm).flops == 10);
  CHECK(p.at(Part::residual, Pass::forward, Section::gemm).flops == 20);
  CHECK(p.at(Part::residual, Pass::backward, Section::gemm).flops == 40);
  CHECK(p.at(Part::norm, Pass::backward, Section::rows).bytes == 800);
  CHECK(p[Section::gemm].flops == 70);
  CHECK(p[Section::gemm].calls == 2);
  p.start();
  CHECK(p[Section::gemm].flops == 0);
}
