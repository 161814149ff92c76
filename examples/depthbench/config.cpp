#include "config.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "read_value.hpp"

namespace depthbench::app {
namespace {

using reading::number;
using reading::Place;
using reading::read;
using Kind = Value::Kind;

// ---- writing
std::string toml_text(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", c);
    else
      out += c;
  }
  return out + '"';
}
std::string written(const std::string& s) { return toml_text(s); }
std::string written(bool b) { return b ? "true" : "false"; }
template <class T>
std::string written(T n) {
  return fmt::format("{}", n);
}

std::vector<std::string> keys(Command command) {
  std::vector<std::string> all;
  RunConfig c;
  const auto collect = [&](const char* key, auto&&...) { all.push_back(key); };
  visit_keys(c, collect);
  if (command == Command::sweep) visit_sweep_keys(c, collect);
  return all;
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  const auto distance = [](std::string_view a, std::string_view b) {  // Levenshtein
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0u);
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < b.size(); ++j) {
        const std::size_t change = diagonal + (a[i] != b[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
      }
    }
    return row.back();
  };
  std::string best;
  std::size_t least = std::size_t(-1);
  for (const auto& candidate : names) {  // a name without its section counts as well: lr -> train.lr
    const std::size_t dot = candidate.find('.');
    std::size_t d = distance(name, candidate);
    if (dot != std::string::npos && name.find('.') == std::string_view::npos)
      d = std::min(d, distance(name, std::string_view(candidate).substr(dot + 1)));
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

Setting setting_of(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    fail<config_error>("'{}' is no setting, needs key=value, e.g. train.lr=1e-3", text);
  return {std::string(text.substr(0, equals)),
          "command line",
          {Kind::bare, std::string(text.substr(equals + 1)), {}, {}}};
}

void apply(RunConfig& config, const Setting& s, Command command) {
  const Place at{s};
  const std::string key =
      s.key == "train.batch_tokens" ? "train.global_batch_tokens" : s.key;  // the library's name for it
  bool found = false;
  const auto try_key = [&](std::string_view name, auto& value, const char*,
                           std::vector<std::string_view> choices = {}) {
    if (name != key) return;
    found = true;
    read(at, s.value, value);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>)
      if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end())
        fail<config_error>("{}: {} needs one of {}, has '{}'", s.where, s.key, fmt::join(choices, ", "),
                           value);
  };
  visit_keys(config, try_key);
  if (!found && command == Command::sweep) visit_sweep_keys(config, try_key);
  if (!found && key.starts_with("residual.") && key.size() > 9) {
    found = true;
    double value = 0;
    const bool numeric =
        s.value.kind == Kind::bare || s.value.kind == Kind::integer || s.value.kind == Kind::real;
    if (!numeric || !number(s.value.text, value))
      fail<config_error>(
          "{}: {} needs a number, as options of residual designs do, has '{}' (or is residual.design meant?)",
          s.where, s.key, s.value.text);
    config.options[key.substr(9)] = value;
  }
  if (!found && key.starts_with("sweep.") && command == Command::train)
    fail<config_error>("{}: {} is a key of `depthbench sweep`, not of `depthbench train`", s.where, s.key);
  if (!found)
    fail<config_error>("{}: unknown key {}; the nearest is {}", s.where, s.key,
                       nearest(s.key, keys(command)));
}

void settle_words(RunConfig& c) {
  c.train.activations = c.activations == "recompute" ? Activations::recompute : Activations::keep;
  c.train.precision = c.precision == "bf16"        ? Precision::bf16
                      : c.precision == "bf16_pure" ? Precision::bf16_pure
                                                   : Precision::fp32;
}

void resolve(RunConfig& c, std::int64_t data_vocab) {
  auto& m = c.model;
  if (m.vocab_size == 0) m.vocab_size = int(data_vocab);
  if (m.vocab_size < data_vocab)
    fail<config_error>("model.vocab_size is {}, the data need {}", m.vocab_size, data_vocab);
  if (m.n_heads == 0 && m.d_model > 0) {  // head sizes are even; the nearest to 32, the larger of two
    for (int n = 1; n <= m.d_model; ++n)
      if (m.d_model % n == 0 && m.d_model / n % 2 == 0 &&
          (m.n_heads == 0 || std::abs(m.d_model / n - 32) < std::abs(m.d_model / m.n_heads - 32)))
        m.n_heads = n;
    if (m.n_heads == 0)
      fail<config_error>("model: d_model is {}, needs an even number (rotary positions)", m.d_model);
  }
  if (m.n_kv_heads == 0) m.n_kv_heads = m.n_heads;
  if (m.ffn_hidden == 0) m.ffn_hidden = ModelConfig::default_ffn(m.d_model);
  settle_words(c);
  check(m);
  check(c.train);
  for (const auto& [key, value] :
       {std::pair{"train.eval_every", c.eval_every}, {"run.checkpoint_every", c.checkpoint_every},
        {"run.statistics_every", c.statistics_every}})
    if (value < 0) fail<config_error>("{} is {}, needs 0 or more", key, value);
  if (c.log_every < 1) fail<config_error>("run.log_every is {}, needs 1 or more", c.log_every);
  if (c.threads < 0 || c.threads > 4096)
    fail<config_error>("run.threads is {}, needs 0 (all) to 4096", c.threads);
}

std::map<std::string, double> options_of(const RunConfig& c, const std::vector<std::string>& designs) {
  std::map<std::string, double> out;
  for (const auto& [name, value] : c.options) {
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) {
      out[name] = value;
      continue;
    }
    const std::string design = name.substr(0, dot);
    if (std::find(designs.begin(), designs.end(), design) == designs.end())
      fail<config_error>("residual.{}: there is no design {}; the nearest is {}", name, design,
                         nearest(design, designs));
    if (design == c.design) out[name.substr(dot + 1)] = value;
  }
  return out;
}

std::string to_toml(const RunConfig& config) {
  std::string out, section;
  visit_keys(config, [&](std::string_view key, const auto& value, const char* meaning, const auto&...) {
    const std::size_t dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    const std::string line = fmt::format("{} = {}", key.substr(dot + 1), written(value));
    out += fmt::format("{:<36}  # {}\n", line, meaning);
    if (key == "residual.design")
      for (const auto& [name, v] : config.options) out += fmt::format("{} = {}\n", name, v);
  });
  return out;
}

std::vector<std::string> differences(const RunConfig& there, const RunConfig& here) {
  std::vector<std::pair<std::string, std::string>> a, b;
  const auto collect = [](auto& list, const RunConfig& c) {
    visit_keys(c, [&](std::string_view key, const auto& value, const auto&...) {
      if (!key.starts_with("run.")) list.emplace_back(key, written(value));
    });
  };
  collect(a, there);
  collect(b, here);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      out.push_back(fmt::format("{} is {} there and {} here", a[i].first, a[i].second, b[i].second));
  if (there.options != here.options) out.push_back("the options of the residual design differ");
  return out;
}

}  // namespace depthbench::app
