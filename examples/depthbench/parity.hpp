#pragma once
#include <string>
#include <vector>

namespace depthbench::app {
// analysis: the analyses of the cases that have an analysis.json, instead.
int parity(const std::vector<std::string>& folders, bool analysis = false);  // exit code
}
