#include "record.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "depthbench/io/atomic_file.hpp"

namespace depthbench::app {
namespace {

using Json = nlohmann::ordered_json;

double number(const Json& j, const char* key) {
  const auto it = j.find(key);
  return it == j.end() || !it->is_number() ? std::numeric_limits<double>::quiet_NaN() : it->get<double>();
}

std::string line_of(const StepLine& s) {
  return Json{{"step", s.step}, {"loss", s.loss},     {"grad_norm", s.grad_norm},
              {"lr", s.lr},     {"tokens", s.tokens}, {"time_s", s.time_s}}
      .dump();
}
std::string line_of(const ValidationLine& v) {
  return Json{{"step", v.step}, {"validation_loss", v.loss}, {"published_loss", v.published}}.dump();
}
std::string line_of(const LayerLine& l) {
  return Json{{"step", l.step}, {"state_rms", l.layers.state_rms}, {"block_grad_norm", l.layers.grad_norm}}.dump();
}
std::vector<double> numbers(const Json& j, const char* key) {
  std::vector<double> v;
  if (const auto it = j.find(key); it != j.end() && it->is_array())
    for (const auto& x : *it) v.push_back(x.is_number() ? x.get<double>() : std::numeric_limits<double>::quiet_NaN());
  return v;
}

}  // namespace

std::string version() { return DEPTHBENCH_VERSION; }

Metrics read_metrics(const std::filesystem::path& path, std::int64_t last_step) {
  Metrics m;
  std::ifstream in(path, std::ios::binary);
  for (std::string line; std::getline(in, line) && !in.eof();) {  // at the end of file without \n: cut off
    const Json j = Json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("step") || !j["step"].is_number_integer() ||
        j["step"].get<std::int64_t>() > last_step)
      continue;
    const auto step = j["step"].get<std::int64_t>();
    if (j.contains("validation_loss"))
      m.validations.push_back({step, number(j, "validation_loss"), number(j, "published_loss")});
    else if (j.contains("state_rms"))
      m.layers.push_back({step, {numbers(j, "state_rms"), numbers(j, "block_grad_norm")}});
    else
      m.steps.push_back({step, std::int64_t(number(j, "tokens")), number(j, "loss"), number(j, "grad_norm"),
                         number(j, "lr"), number(j, "time_s")});
  }
  return m;
}

MetricsFile::MetricsFile(const std::filesystem::path& path, const Metrics& kept) : path_(path) {
  write_file_atomically(path, [&](AtomicFile& f) {
    auto v = kept.validations.begin();
    auto l = kept.layers.begin();
    for (const auto& s : kept.steps) {
      f.write(line_of(s) + "\n");
      for (; l != kept.layers.end() && l->step <= s.step; ++l) f.write(line_of(*l) + "\n");
      for (; v != kept.validations.end() && v->step <= s.step; ++v) f.write(line_of(*v) + "\n");
    }
  });
  file_.reset(std::fopen(path.c_str(), "ab"));
  if (!file_) fail<file_error>("{}: cannot be opened to append: {}", path.string(), system_error_text());
}
void MetricsFile::add(const StepLine& line) { write(line_of(line)); }
void MetricsFile::add(const ValidationLine& line) { write(line_of(line)); }
void MetricsFile::add(const LayerLine& line) { write(line_of(line)); }
void MetricsFile::write(const std::string& line) {
  const std::string whole = line + "\n";
  if (std::fwrite(whole.data(), 1, whole.size(), file_.get()) != whole.size() ||
      std::fflush(file_.get()) != 0)
    fail<file_error>("{}: cannot write: {}", path_.string(), system_error_text());
}

const char* name_of(Status s) {
  switch (s) {
    case Status::finished:
      return "finished";
    case Status::diverged:
      return "diverged";
    case Status::interrupted:
      return "interrupted";
    default:
      return "unfinished";
  }
}

void write_summary(const std::filesystem::path& path, const Summary& s, const RunConfig& config) {
  Json c;
  visit_keys(config, [&](std::string_view key, const auto& value, const auto&...) {
    const std::size_t dot = key.find('.');
    c[std::string(key.substr(0, dot))][std::string(key.substr(dot + 1))] = value;
  });
  for (const auto& [name, value] : config.options) c["residual"][name] = value;
  const auto& p = s.parameters;
  Json j{{"status", name_of(s.status)},
         {"design", s.design},
         {"n_layers", s.n_layers},
         {"d_model", s.d_model},
         {"parameters",
          {{"embedding", p.embedding},
           {"backbone", p.backbone},
           {"norm", p.norm},
           {"residual", p.residual},
           {"head", p.head},
           {"total", p.total()}}},
         {"lr", s.lr},
         {"seed", s.seed},
         {"steps", s.steps},
         {"total_steps", s.total_steps},
         {"tokens", s.tokens},
         {"train_loss", s.train_loss},
         {"validation", s.validation},
         {"validation_loss", s.validation_loss},
         {"published_loss", s.published_loss},
         {"unigram_entropy", s.unigram_entropy},
         {"seconds", s.seconds},
         {"tokens_per_s", s.tokens_per_s},
         {"peak_memory_bytes", s.peak_memory},
         {"threads", s.threads}};
  if (s.status == Status::diverged) j["diverged_at_step"] = s.diverged_at_step;
  j["versions"] = {{"depthbench", version()},
                   {"gemm", Engine::gemm_name()},
                   {"simd", Engine::vector_width()},
                   {"compiler", __VERSION__}};
  j["config"] = c;
  write_file_atomically(path, [&](AtomicFile& f) { f.write(j.dump(2) + "\n"); });
}

std::optional<Summary> read_summary(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  const Json j = Json::parse(in, nullptr, false);
  try {
    Summary s;
    const std::string status = j.at("status");
    for (const Status known : {Status::finished, Status::diverged, Status::interrupted})
      if (status == name_of(known)) s.status = known;
    s.design = j.at("design");
    s.n_layers = j.at("n_layers");
    s.d_model = j.at("d_model");
    const auto& p = j.at("parameters");
    s.parameters = {p.at("embedding"), p.at("backbone"), p.at("norm"), p.at("residual"), p.at("head")};
    s.lr = j.at("lr");
    s.seed = j.at("seed");
    s.steps = j.at("steps");
    s.total_steps = j.at("total_steps");
    s.tokens = j.at("tokens");
    s.diverged_at_step = j.value("diverged_at_step", std::int64_t{0});
    s.train_loss = number(j, "train_loss");
    s.validation = j.at("validation");
    s.validation_loss = number(j, "validation_loss");
    s.published_loss = number(j, "published_loss");
    s.unigram_entropy = number(j, "unigram_entropy");
    s.seconds = number(j, "seconds");
    s.tokens_per_s = number(j, "tokens_per_s");
    s.peak_memory = j.at("peak_memory_bytes");
    s.threads = j.at("threads");
    return s;
  } catch (const std::exception& e) {
    fail<format_error>("{}: is no summary of a run: {}", path.string(), e.what());
  }
}

}  // namespace depthbench::app
