// The app as a function, so that a program with designs of its own trains and reports by the same code:
//   int main(int argc, char** argv) {
//     return depthbench::app::run(argc, argv, [](auto& designs) { designs.template add_type<Mine>("mine"); });
//   }
// Such a program is compiled with all sources of this folder but main.cpp.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/backend/shape_only.hpp"
#include "depthbench/residual/designs.hpp"

namespace depthbench::app {

// Adds designs to the table that trains and to the one that is accounted for: a callable for both (auto&). One that takes
// Designs<Cpu, float>& alone adds designs that train, and that `account` refuses.
struct AddDesigns {
  std::function<void(Designs<Cpu, float>&)> trained;
  std::function<void(Designs<ShapeOnly, float>&)> counted;

  AddDesigns() = default;
  template <class F> requires std::is_invocable_v<F&, Designs<Cpu, float>&>
  AddDesigns(F add) : trained(add) {
    if constexpr (std::is_invocable_v<F&, Designs<ShapeOnly, float>&>) counted = add;
  }
};

// Exit code: 0; 1 a parity case failed, or a fault of ours; 2 usage or configuration; 3 bad data or file;
// 4 the run diverged; 130 interrupted after saving. An error is one line on stderr.
int run(int argc, char** argv, const AddDesigns& add = {});
int run(std::vector<std::string> arguments, const AddDesigns& add = {});  // without the program's name

}  // namespace depthbench::app
