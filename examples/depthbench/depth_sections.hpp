// The part of a report that shows effective depth: what `analyze` left in the runs' folders, as small multiples over designs.
#pragma once
#include <string>

#include "results.hpp"

namespace depthbench::app {

// Empty if no run has been analyzed. Of each design and shape one run is shown: at the design's best rate, the first seed.
std::string depth_sections(const Results& results);

// The heat maps of one design: its deepest run that was analyzed.
std::string depth_multiples(const Results& results, const std::string& design);

}  // namespace depthbench::app
