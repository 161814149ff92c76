// Costs as JSON, and the same numbers as CSV.
#include "account.hpp"
#include "depthbench/account/published_shapes.hpp"

namespace depthbench::app {
namespace {

Json numbers(const Work& w) {
  return {{"gemm", w.gemm},
          {"attention", w.attention},
          {"residual", w.residual},
          {"residual_gemm", w.residual_gemm},
          {"residual_attention", w.residual_attention},
          {"norms", w.norms},
          {"head", w.head},
          {"other", w.other},
          {"total", w.total()}};
}

}  // namespace

Json account_json(const Account& a, const Pricing& pricing) {
  const Cost& c = a.cost;
  const ModelConfig& m = c.model;
  const Work &forward = c.flops.forward, &backward = c.flops.backward;
  const ParameterCounts& p = c.parameters;
  const MemoryCounts& y = c.memory;
  Json j{{"design", a.design},
         {"options", a.options},
         {"n_layers", m.n_layers},
         {"d_model", m.d_model},
         {"aspect_ratio", double(m.d_model) / m.n_layers},
         {"ffn_hidden", m.ffn_hidden},
         {"n_heads", m.n_heads},
         {"n_kv_heads", m.n_kv_heads},
         {"vocab_size", m.vocab_size},
         {"seq_len", c.seq_len},
         {"batch", c.batch},
         {"published_shape", is_published(m)},
         {"units",
          {{"flops", "FLOPs of one sequence"},
           {"bytes", "bytes moved by one sequence, float32"},
           {"memory", "bytes of float32 tensors, of the batch"},
           {"kv_cache_bytes", "bytes of one sequence, bfloat16"}}},
         {"parameters",
          {{"total", p.total()},
           {"embedding", p.embedding},
           {"backbone", p.backbone},
           {"residual", p.residual},
           {"final_norm", p.final_norm},
           {"head", p.head}}}};
  j["flops"] = {{"forward_body", forward.body()},
                {"forward_head", forward.head},
                {"attention_share", forward.attention_share()},
                {"residual", forward.residual},
                {"backward", backward.total()},
                {"forward", forward.total()},
                {"recompute", c.recompute_flops},
                {"optimizer_step", c.optimizer_flops},
                {"step", c.step_flops()},
                {"forward_parts", numbers(forward)},
                {"backward_parts", numbers(backward)}};
  j["bytes"] = {{"forward", numbers(c.bytes.forward)},
                {"backward", numbers(c.bytes.backward)},
                {"optimizer_step", c.optimizer_bytes}};
  j["kv_cache_bytes"] = c.kv_cache;
  j["memory"] = {{"parameters", y.parameters},
                 {"gradients", y.gradients},
                 {"moments", y.moments},
                 {"saved_activations", y.saved},
                 {"saved_activations_recompute", y.saved_recompute},
                 {"peak", y.peak},
                 {"peak_recompute", y.peak_recompute},
                 {"inference", c.inference_peak()}};
  if (const auto paper = published_overhead(a))
    j["residual_published"] = {{"formula", paper->formula},
                               {"flops", paper->flops},
                               {"exact_to_published", forward.residual / paper->flops},
                               {"why", paper->why}};
  if (!pricing.machine.empty()) {
    const TimeEstimate t = time_at_least(c, pricing.flops_per_s, pricing.bytes_per_s);
    j["estimate"] = {{"machine", pricing.machine},
                     {"source", pricing.source},
                     {"measured", false},
                     {"flops_per_s", pricing.flops_per_s},
                     {"bytes_per_s", pricing.bytes_per_s},
                     {"step_s_at_least", t.step_s()},
                     {"products_s", t.matrix_s},
                     {"rest_s", t.rest_s}};
    if (pricing.tokens > 0) {
      const double hours = t.step_s() / double(c.batch * c.seq_len) * pricing.tokens / 3600;
      j["estimate"]["tokens"] = pricing.tokens;
      j["estimate"]["device_hours_at_least"] = hours;
      if (pricing.price_per_hour > 0) j["estimate"]["cost_at_least"] = hours * pricing.price_per_hour;
    }
  }
  return j;
}

// A column a number: parameters.total, flops.forward_body, ...; words and units are left out.
std::string account_csv(const std::vector<Account>& accounts, const Pricing& pricing) {
  std::string head, rows;
  for (const Account& a : accounts) {
    Json j = account_json(a, pricing);
    for (const char* words : {"units", "options", "residual_published"}) j.erase(words);
    std::string names, row;
    const Json flat = j.flatten();
    for (const auto& [path, value] : flat.items()) {
      if (value.is_string() && path != "/design") continue;
      std::string name = path.substr(1);
      for (char& ch : name)
        if (ch == '/') ch = '.';
      names += (names.empty() ? "" : ",") + name;
      row += (row.empty() ? "" : ",") + (value.is_string() ? value.get<std::string>() : value.dump());
    }
    head = names;
    rows += row + "\n";
  }
  return head + "\n" + rows;
}

}  // namespace depthbench::app
