// Training by several processes: rank 0 leads, every other one does what it is told.
#pragma once
#include "engine.hpp"
#include "processes.hpp"

namespace depthbench::app {

// On rank 0 a training that tells the others of each thing that all of them do; inner: this rank's own part.
//   throws config_error if so many processes cannot share the batch
std::unique_ptr<Training> lead(Processes& processes, const RunConfig& config, std::function<std::unique_ptr<Training>()> inner);

// The others: until rank 0 ends. Returns the exit code.
int follow(const Engine& engine, Processes& processes);
void end_followers(Processes& processes);

}  // namespace depthbench::app
