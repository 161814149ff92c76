// One run from its start, or from its checkpoint, to its end.
#pragma once
#include <functional>

#include "engine.hpp"
#include "record.hpp"
#include "run_folder.hpp"
#include "signals.hpp"

namespace depthbench::app {

enum class Start { anew, resume };

struct Show {
  std::string label;                              // before each progress line
  std::int64_t every = 10;                        // steps between plain lines, 0: none
  std::function<std::string(double)> extra = {};  // see progress.hpp
  bool notes = true;                              // lines about resuming, validations, saving
};

// config: resolved. Returns the summary that it wrote; status finished, diverged or interrupted.
//   throws what the engine and the files throw
Summary train_run(const Engine& engine, const Data& data, const RunConfig& config, RunFolder& folder,
                  Start start, const StopRequests& stop, const Show& show);

}  // namespace depthbench::app
