#pragma once
#include <string>
#include <vector>

namespace depthbench::app {
int parity(const std::vector<std::string>& folders);  // exit code
}
