// Numbers for people.
#pragma once
#include <cstdint>
#include <string>

namespace depthbench::app {

std::string count_text(double n);       // 834   12.3k   1.21M   3.4G
std::string bytes_text(double bytes);   // 53 MB
std::string time_text(double seconds);  // 8 s   3 min 20 s   2 h 05 min
std::string loss_text(double loss);     // 2.7765, or "not a number"

}  // namespace depthbench::app
