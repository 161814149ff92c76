// The data of a run: opened, split, and described.
#pragma once
#include <memory>
#include <string>

#include "config.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/split.hpp"
#include "depthbench/data/validation.hpp"

namespace depthbench::app {

struct Data {
  Corpus corpus;
  std::size_t documents = 0;  // after cutting into pieces
  Split split;
  double unigram_entropy = 0;  // of the held-out part, nats: the yardstick
  std::uint64_t train_tokens = 0, validation_tokens = 0;
  std::string described;  // "moby_dick.txt: 1204998 tokens, ..."
};

// Makes the paths absolute; without any, the text that comes with the sources.
//   throws config_error: both data.text and data.tokens, or no data anywhere
void locate(DataConfig& config);
// After locate().   throws file_error, format_error, dtype_error; config_error where the split cannot be had
std::unique_ptr<const Data> open_data(const DataConfig& config);
// data: must outlive the set
ValidationSet validation_set(const Data& data, const DataConfig& config, std::int64_t window);

}  // namespace depthbench::app
