// TOML -> settings. The only file that knows toml++.
#include <toml++/toml.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "config.hpp"

namespace depthbench::app {
namespace {

Value value_of(const toml::node& node) {
  using Kind = Value::Kind;
  if (const auto* s = node.as_string()) return {Kind::text, s->get(), {}, {}};
  if (const auto* i = node.as_integer()) return {Kind::integer, fmt::format("{}", i->get()), {}, {}};
  if (const auto* f = node.as_floating_point()) return {Kind::real, fmt::format("{}", f->get()), {}, {}};
  if (const auto* b = node.as_boolean()) return {Kind::boolean, b->get() ? "true" : "false", {}, {}};
  Value v{Kind::other, "a date or time", {}, {}};
  if (const auto* list = node.as_array()) {
    v.kind = Kind::list;
    for (const auto& item : *list) v.items.push_back(value_of(item));
  } else if (const auto* table = node.as_table()) {
    v.kind = Kind::table;
    for (const auto& [key, item] : *table) v.members.emplace(std::string(key.str()), value_of(item));
  }
  return v;
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& name,
             std::vector<Setting>& out) {
  for (const auto& [key, node] : table) {
    const std::string full = prefix + std::string(key.str());
    if (const auto* inner = node.as_table())
      flatten(*inner, full + ".", name, out);
    else
      out.push_back({full, fmt::format("{}:{}", name, node.source().begin.line), value_of(node)});
  }
}

}  // namespace

std::vector<Setting> parse_settings(std::string_view text, const std::string& name,
                                    const std::string& folder) {
  std::vector<Setting> settings;
  try {
    flatten(toml::parse(text, name), "", name, settings);
  } catch (const toml::parse_error& e) {
    fail<config_error>("{}:{}: {}", name, e.source().begin.line, e.description());
  }
  for (auto& s : settings)
    if ((s.key == "data.text" || s.key == "data.tokens") && !s.value.text.empty())
      s.value.text = (std::filesystem::path(folder) / s.value.text).lexically_normal().string();
  return settings;
}

std::vector<Setting> read_settings(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) fail<file_error>("{}: cannot be read", path);
  return parse_settings(text.str(), path, std::filesystem::path(path).parent_path().string());
}

}  // namespace depthbench::app
