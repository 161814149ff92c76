// A golden case: an independent float64 computation to compare with (tests/golden/README.md).
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/io/safetensors.hpp"
#include "depthbench/model/transformer.hpp"
#include "instances.hpp"

namespace depthbench::app {

using Json = nlohmann::ordered_json;

// throws file_error, format_error, shape_error where a file is not what the README says
Json read_json(const std::filesystem::path& path);

struct GoldenCase {
  Json json;  // case.json
  SafeTensors file;
  std::unique_ptr<Transformer<Cpu, double>> model;  // with the case's parameters
  std::vector<std::int32_t> tokens, targets;
  int batch = 0;

  GoldenCase(const std::filesystem::path& folder, Cpu& cpu);
};

// The largest difference over the largest entry of what is needed (or `floor` if that is larger). NaN if there is one.
double relative_error(std::span<const double> has, std::span<const double> needs, double floor = 0);

bool run_analysis_case(const std::filesystem::path& folder, Cpu& cpu, Json& line);  // parity_analysis.cpp

}  // namespace depthbench::app
