// The instantiation for GPUs: engine_cuda.cu where the app is built with CUDA, engine_no_cuda.cpp where it is not.
#pragma once
#include <optional>

#include "engine.hpp"

namespace depthbench::app {

// "cuda:1" -> 1; "cpu" -> none.   throws config_error for another text, and for a GPU in a program built without CUDA
std::optional<int> cuda_ordinal(const std::string& device);

bool cuda_built();
std::string cuda_found();  // "NVIDIA H200, 132 processors, 139 GB", or why there is none
// ordinal: of the first process on this machine; the others take those that follow.
std::unique_ptr<Training> train_on_cuda(int ordinal, Processes& processes, const RunConfig& config, const Data& data);
std::unique_ptr<Model> open_on_cuda(int ordinal, const RunConfig& config, const std::string& checkpoint);

}  // namespace depthbench::app
