// The app as a function, so that a program with designs of its own trains and reports by the same code:
//   int main(int argc, char** argv) {
//     return depthbench::app::run(argc, argv, [](auto& designs) { designs.add("mine", ...); });
//   }
// Such a program is compiled with all sources of this folder but main.cpp.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/residual/designs.hpp"

namespace depthbench::app {

using AddDesigns = std::function<void(Designs<Cpu, float>&)>;

// Exit code: 0; 1 a parity case failed, or a fault of ours; 2 usage or configuration; 3 bad data or file;
// 4 the run diverged; 130 interrupted after saving. An error is one line on stderr.
int run(int argc, char** argv, const AddDesigns& add = {});
int run(std::vector<std::string> arguments, const AddDesigns& add = {});  // without the program's name

}  // namespace depthbench::app
