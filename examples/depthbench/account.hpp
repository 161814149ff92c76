// What `depthbench account` shows: costs as text, JSON, CSV and pictures.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "depthbench/account/cost.hpp"
#include "depthbench/account/machines.hpp"
#include "svg.hpp"

namespace depthbench::app {

using Json = nlohmann::ordered_json;

struct Account {
  std::string design;
  std::map<std::string, double> options;
  Cost cost;
};

// The rates that times are estimated from, and what a run is.
struct Pricing {
  std::string machine, source;  // empty: no estimate is wanted
  double flops_per_s = 0, bytes_per_s = 0;
  double tokens = 0;          // of a whole run; 0: one step only
  double price_per_hour = 0;  // 0: not given
};

// What the papers count for a design's overhead, forward, one sequence, and where the exact count differs.
struct PublishedOverhead {
  std::string formula, why;
  double flops;
};
std::optional<PublishedOverhead> published_overhead(const Account& account);

Json account_json(const Account& account, const Pricing& pricing);
std::string account_csv(const std::vector<Account>& accounts, const Pricing& pricing);
std::string account_text(const Account& account, const Pricing& pricing);  // one design and shape
std::string account_table(const std::vector<Account>& accounts, const Pricing& pricing);
std::string account_notes();  // what is counted

// Against the aspect ratio, one line a design, with the name of its file: flops.svg, attention_share.svg, kv_cache.svg,
// residual.svg, memory.svg, memory_recompute.svg.
std::vector<std::pair<std::string, Chart>> account_charts(const std::vector<Account>& accounts);
// Writes them into a folder; returns the names.
std::vector<std::string> write_account_pictures(const std::vector<Account>& accounts,
                                                const std::string& folder);

}  // namespace depthbench::app
