// The page of a sweep's report, from its results and pictures.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "results.hpp"

namespace depthbench::app {

struct ReportFacts {  // what the runs share
  std::string described;       // their data
  double unigram_entropy = 0;  // of the held-out part, nats
  bool by_document = false;    // how validation was taken
  bool published = false;      // show reported losses beside
};
struct Pictures {
  std::string aspect, rates, published;                     // empty: there is none
  std::vector<std::pair<std::string, std::string>> curves;  // "L = 4, d = 64", picture
  std::vector<std::pair<std::string, std::string>> costs;   // "FLOPs against aspect ratio", picture
};
// A whole page around `body`.
std::string page_of(const std::string& title, const std::string& body, const std::string& more_style = {});
std::string report_page(const Results& results, const ReportFacts& facts, const Pictures& pictures);

}  // namespace depthbench::app
