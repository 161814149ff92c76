// How a design is wired, as a small picture: time flows upwards from a sublayer's input to the next one's.
#pragma once
#include <string>

namespace depthbench::app {

std::string wiring_svg(const std::string& design);  // empty for a design whose wiring is not known

}  // namespace depthbench::app
