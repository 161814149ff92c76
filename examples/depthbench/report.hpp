// The report of a sweep, in its folder:
//   index.html              one page that needs nothing else, offline, light or dark, on a phone too
//   loss_by_aspect_ratio.svg   its main picture alone
//   results.csv  results.json
#pragma once
#include <filesystem>

#include "account.hpp"
#include "report_page.hpp"

namespace depthbench::app {

// accounts: what the designs cost at the shapes, in the order of results.designs
void write_report(const Results& results, const ReportFacts& facts, const std::vector<Account>& accounts,
                  const std::filesystem::path& out);

}  // namespace depthbench::app
