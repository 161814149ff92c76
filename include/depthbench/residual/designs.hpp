// The designs by name. A user adds one:   designs.add("rezero", [](const DesignOptions&) { return std::make_unique<ReZero<Cpu, float>>(); });
#pragma once
#include <functional>

#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/block_attn_res.hpp"
#include "depthbench/residual/deepnorm.hpp"
#include "depthbench/residual/hc.hpp"
#include "depthbench/residual/keel.hpp"
#include "depthbench/residual/lns.hpp"
#include "depthbench/residual/mhc.hpp"
#include "depthbench/residual/moda.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "depthbench/residual/sandwich_ln.hpp"

namespace depthbench {

template <class Device, class R> class Designs;

// Adds the designs of this folder to a table. Every kernel of every design is compiled where this is instantiated: a program
// of several files says `extern template void add_built_in(Designs<Cpu, float>&);` in all but one.
template <class Device, class R> void add_built_in(Designs<Device, R>& designs);

template <class Device, class R> class Designs {
 public:
  using Pointer = std::unique_ptr<Residual<Device, R>>;
  using Factory = std::function<Pointer(const DesignOptions&)>;

  // The built-in ones.
  Designs() { add_built_in(*this); }
  void add(std::string name, Factory make) {
    if (!table_.emplace(name, std::move(make)).second) fail<config_error>("residual designs: there is already one named {}", name);
  }
  template <template <class, class> class Design> void add_type(std::string name) {
    add(std::move(name), [](const DesignOptions& options) -> Pointer { return std::make_unique<Design<Device, R>>(options); });
  }
  Pointer make(const std::string& name, const DesignOptions& options = {}) const {
    const auto it = table_.find(name);
    if (it == table_.end()) fail<config_error>("residual designs: there is none named {}; there are {}", name, names());
    return it->second(options);
  }
  bool has(const std::string& name) const { return table_.contains(name); }
  std::string names() const {  // "attn_res, hc, pre_ln"
    std::string s;
    for (const auto& [name, make] : table_) s += (s.empty() ? "" : ", ") + name;
    return s;
  }
  std::vector<std::string> list() const {
    std::vector<std::string> v;
    for (const auto& [name, make] : table_) v.push_back(name);
    return v;
  }

 private:
  std::map<std::string, Factory> table_;
};

template <class Device, class R> void add_built_in(Designs<Device, R>& designs) {
  designs.template add_type<PreLn>("pre_ln");
  designs.template add_type<SandwichLn>("sandwich_ln");
  designs.template add_type<Lns>("lns");
  designs.template add_type<DeepNorm>("deepnorm");
  designs.template add_type<Keel>("keel");
  designs.template add_type<Hc>("hc");
  designs.template add_type<Mhc>("mhc");
  designs.template add_type<AttnRes>("attn_res");
  designs.template add_type<BlockAttnRes>("block_attn_res");
  designs.template add_type<Moda>("moda");
}

}  // namespace depthbench
