// The page of a sweep's report, from its results and pictures.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data.hpp"
#include "results.hpp"

namespace depthbench::app {

struct Pictures {
  std::string aspect, rates;                                // empty: there is none
  std::vector<std::pair<std::string, std::string>> curves;  // "L = 4, d = 64", picture
  std::vector<std::pair<std::string, std::string>> costs;   // "FLOPs against aspect ratio", picture
};
std::string report_page(const Results& results, const Data& data, const RunConfig& config,
                        const Pictures& pictures, const std::filesystem::path& out);

}  // namespace depthbench::app
