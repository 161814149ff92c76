// A value as it was written -> the type that its key has, or an error that says what was expected.
// Part of config.cpp, the only file that includes it.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>

#include "config.hpp"

namespace depthbench::app::reading {

using Kind = Value::Kind;

inline const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::integer:
      return "a whole number";
    case Kind::real:
      return "a number";
    case Kind::boolean:
      return "true or false";
    case Kind::list:
      return "a list";
    case Kind::table:
      return "a table";
    case Kind::other:
      return "a date or time";
    default:
      return "text";
  }
}

struct Place {  // what an error says first
  const Setting& s;
  [[noreturn]] void wrong(const char* needs, const Value& v) const {
    const bool scalar = v.kind != Kind::list && v.kind != Kind::table && v.kind != Kind::other;
    if (v.kind == Kind::bare) fail<config_error>("{}: {} needs {}, has '{}'", s.where, s.key, needs, v.text);
    fail<config_error>("{}: {} needs {}, has {}{}", s.where, s.key, needs, name_of(v.kind),
                       scalar ? fmt::format(" ('{}')", v.text) : "");
  }
};

template <class T>
bool number(std::string_view text, T& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc{} && end == text.data() + text.size();
}

template <class T>
requires std::is_integral_v<T>
void read(const Place& at, const Value& v, T& out) {
  const char* needs = std::is_unsigned_v<T> ? "a whole number of 0 or more" : "a whole number";
  if ((v.kind != Kind::bare && v.kind != Kind::integer) || !number(v.text, out)) at.wrong(needs, v);
}
inline void read(const Place& at, const Value& v, double& out) {
  const bool kind = v.kind == Kind::bare || v.kind == Kind::integer || v.kind == Kind::real;
  if (!kind || !number(v.text, out) || !std::isfinite(out)) at.wrong("a number", v);
}
inline void read(const Place& at, const Value& v, bool& out) {
  if ((v.kind != Kind::bare && v.kind != Kind::boolean) || (v.text != "true" && v.text != "false"))
    at.wrong("true or false", v);
  out = v.text == "true";
}
inline void read(const Place& at, const Value& v, std::string& out) {
  if (v.kind != Kind::bare && v.kind != Kind::text) at.wrong("text", v);
  out = v.text;
}
inline void read(const Place& at, const Value& v, ShapeConfig& out) {
  if (v.kind == Kind::table) {
    for (const auto& [name, member] : v.members) {
      int* to = name == "n_layers"     ? &out.n_layers
                : name == "d_model"    ? &out.d_model
                : name == "n_heads"    ? &out.n_heads
                : name == "n_kv_heads" ? &out.n_kv_heads
                : name == "ffn_hidden" ? &out.ffn_hidden
                                       : nullptr;
      if (!to)
        fail<config_error>("{}: {} has an unknown key {}; the nearest is {}", at.s.where, at.s.key, name,
                           nearest(name, {"n_layers", "d_model", "n_heads", "n_kv_heads", "ffn_hidden"}));
      read(at, member, *to);
    }
  } else {
    const std::size_t x = v.text.find('x');
    if ((v.kind != Kind::bare && v.kind != Kind::text) || x == std::string::npos ||
        !number(std::string_view(v.text).substr(0, x), out.n_layers) ||
        !number(std::string_view(v.text).substr(x + 1), out.d_model))
      at.wrong("shapes as L x d, e.g. 4x64", v);
  }
  if (out.n_layers < 1 || out.d_model < 1)
    fail<config_error>("{}: {} needs n_layers and d_model of 1 or more, has {} and {}", at.s.where, at.s.key,
                       out.n_layers, out.d_model);
}
template <class T>
void read(const Place& at, const Value& v, std::vector<T>& out) {
  std::vector<Value> items = v.items;
  if (v.kind == Kind::bare) {  // 1,2,3 or [1, 2, 3]
    std::string_view text = v.text;
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
      const std::size_t comma = std::min(text.find(','), text.size());
      std::string_view item = text.substr(0, comma);
      while (item.starts_with(' ')) item.remove_prefix(1);
      while (item.ends_with(' ')) item.remove_suffix(1);
      items.push_back({Kind::bare, std::string(item), {}, {}});
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  } else if (v.kind != Kind::list) {
    items = {v};
  }
  out.clear();
  for (const auto& item : items) read(at, item, out.emplace_back());
  if (out.empty()) fail<config_error>("{}: {} needs at least one entry", at.s.where, at.s.key);
}

}  // namespace depthbench::app::reading
