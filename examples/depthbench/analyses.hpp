// The analyses as the app runs them: by name, on the float model, with what they found as plain tables.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "depthbench/analysis/sample.hpp"
#include "depthbench/backend/cpu.hpp"

namespace depthbench {
template <class Device, class R> class Transformer;
template <class Device, class R> class Tape;
}  // namespace depthbench

namespace depthbench::app {

struct AnalysisKind {
  const char* name;
  int windows, seq;     // of the published settings; a run trained on shorter windows uses its own length
  const char* meaning;  // what a number is, with its unit
  bool lapack = false;  // needs one
};
const std::vector<AnalysisKind>& analysis_kinds();
const AnalysisKind& analysis_kind(const std::string& name);  // throws config_error, naming the nearest

struct FoundTable {  // row-major; NaN: not defined
  std::string name, rows_are, cols_are;
  int rows = 0, cols = 0;
  std::vector<double> values, half_widths;  // of the 95 % interval; empty: not estimated
};
struct Finding {
  std::string not_defined;  // why the design has no such thing; empty: it has
  std::vector<FoundTable> tables;
  std::vector<std::pair<std::string, double>> numbers;
};

Finding run_analysis(const std::string& name, Transformer<Cpu, float>& model, Tape<Cpu, float>& tape, const Sample& sample,
                     const AnalysisOptions& options);

}  // namespace depthbench::app
