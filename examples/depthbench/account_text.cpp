// Costs as text: one account in full, many as a table.
#include "account.hpp"
#include "depthbench/core/error.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

constexpr double tera = 1e-12, giga = 1e-9, mega = 1e-6;

std::string grouped(std::int64_t n) {  // 405,406,720
  std::string s = fmt::format("{}", n);
  for (int i = int(s.size()) - 3; i > 0; i -= 3) s.insert(std::size_t(i), ",");
  return s;
}

std::string short_time(double s) { return s < 10 ? fmt::format("{:.3g} s", s) : time_text(s); }

std::string time_lines(const Account& a, const Pricing& p) {
  const Cost& c = a.cost;
  const TimeEstimate t = time_at_least(c, p.flops_per_s, p.bytes_per_s);
  const double per_token = t.step_s() / double(c.batch * c.seq_len);
  std::string out = fmt::format(
      "\nestimate for {}: not measured; the least time that {:.4g} TFLOP/s and {:.4g} GB/s allow\n"
      "  source: {}\n  one step of {} tokens  {} (products {}, the rest {}), {} tokens/s\n",
      p.machine, p.flops_per_s * tera, p.bytes_per_s * giga, p.source, c.batch * c.seq_len,
      short_time(t.step_s()), short_time(t.matrix_s), short_time(t.rest_s), count_text(1 / per_token));
  if (p.tokens > 0) {
    const double hours = per_token * p.tokens / 3600;
    out += fmt::format("  {} tokens             {:.4g} device hours or more, {:.3g} at 40 % of the peaks{}\n",
                       count_text(p.tokens), hours, hours / 0.4,
                       p.price_per_hour > 0 ? fmt::format("; at {:g} an hour: {:.4g} or more",
                                                          p.price_per_hour, hours * p.price_per_hour)
                                            : "");
  }
  return out;
}

}  // namespace

std::optional<PublishedOverhead> published_overhead(const Account& a) {
  const double T = double(a.cost.seq_len), d = a.cost.model.d_model, L = a.cost.model.n_layers;
  if (const auto it = a.options.find("n_streams"); it != a.options.end() && it->second != 4) return {};
  if (a.design == "hc")
    return PublishedOverhead{"192 T d L",
                             "the exact count has also the tanh, scales and tables of the coefficients (121 "
                             "a token and sublayer) and the sum of the streams at the end",
                             192 * T * d * L};
  if (a.design == "mhc")
    return PublishedOverhead{"480 T d L",
                             "the exact count has also the sigmoids and 20 Sinkhorn iterations on 4 x 4 "
                             "numbers (about 1,600 a token and sublayer)",
                             480 * T * d * L};
  if (a.design == "attn_res")
    return PublishedOverhead{"8 T d L^2",
                             "the paper takes L sources a mixer on average; mixer k has k + 1, the embedding "
                             "among them, and the read-out 2 L + 1, so 12 T d L more; the softmax "
                             "adds 7 a source",
                             8 * T * d * L * L};
  return {};
}

std::string account_text(const Account& a, const Pricing& pricing) {
  const Cost& c = a.cost;
  const ModelConfig& m = c.model;
  const ParameterCounts& p = c.parameters;
  std::string options;
  for (const auto& [name, value] : a.options) options += fmt::format(", {} = {}", name, value);
  std::string out = fmt::format(
      "design      {}{}\nshape       L = {} blocks, d = {}, d / L = {:.4g}, {} heads of {}{}, FFN {}, "
      "vocabulary {}, T = {}, batch {}\n",
      a.design, options, m.n_layers, m.d_model, double(m.d_model) / m.n_layers, m.n_heads, m.head_dim(),
      m.n_kv_heads != m.n_heads ? fmt::format(" ({} for keys and values)", m.n_kv_heads) : "", m.ffn_hidden,
      m.vocab_size, c.seq_len, c.batch);
  out += fmt::format("parameters  {} = embedding {} + backbone {} + residual {} + last norm {} + head {}\n\n",
                     grouped(p.total()), grouped(p.embedding), grouped(p.backbone), grouped(p.residual),
                     grouped(p.final_norm), grouped(p.head));
  out += fmt::format("{:<28}{:>24}{:>24}\n{:<28}{:>12}{:>12}{:>12}{:>12}\n", "one sequence", "FLOPs (GFLOP)",
                     "bytes moved (GB)", "", "forward", "backward", "forward", "backward");
  const auto line = [&](const char* name, double Work::*part) {
    out += fmt::format("{:<28}{:>12.3f}{:>12.3f}{:>12.4f}{:>12.4f}\n", name, c.flops.forward.*part * giga,
                       c.flops.backward.*part * giga, c.bytes.forward.*part * giga,
                       c.bytes.backward.*part * giga);
  };
  line("body: products", &Work::gemm);
  line("body: attention", &Work::attention);
  line("residual design", &Work::residual);
  line("  of which products", &Work::residual_gemm);
  if (c.flops.forward.residual_attention > 0) line("  of which depth attention", &Work::residual_attention);
  line("norms", &Work::norms);
  line("head: product", &Work::head);
  line("other", &Work::other);
  out += fmt::format("{:<28}{:>12.3f}{:>12.3f}{:>12.4f}{:>12.4f}\n", "total", c.flops.forward.total() * giga,
                     c.flops.backward.total() * giga, c.bytes.forward.total() * giga,
                     c.bytes.backward.total() * giga);
  out += fmt::format(
      "body {:.4f} TFLOP forward, attention {:.2f} % of it; residual design {:.3f} % of the body; "
      "recomputation adds {:.3f} TFLOP\n",
      c.flops.forward.body() * tera, 100 * c.flops.forward.attention_share(),
      100 * c.flops.forward.residual / c.flops.forward.body(), c.recompute_flops * tera);
  if (const auto paper = published_overhead(a))
    out += fmt::format(
        "residual design, forward: exact {:.4f} GFLOP, the paper's {} = {:.4f} GFLOP ({:+.2f} %):\n  {}\n",
        c.flops.forward.residual * giga, paper->formula, paper->flops * giga,
        100 * (c.flops.forward.residual / paper->flops - 1), paper->why);
  const MemoryCounts& y = c.memory;
  out += fmt::format("\nmemory of tensors, float32      MB ({} {} in a batch)\n", c.batch,
                     c.batch == 1 ? "sequence" : "sequences");
  const auto memory = [&](const char* name, double bytes) {
    out += fmt::format("{:<28}{:>12.1f}\n", name, bytes * mega);
  };
  memory("parameters", y.parameters);
  memory("gradients", y.gradients);
  memory("AdamW moments", y.moments);
  memory("saved activations", y.saved);
  memory("  with recomputation", y.saved_recompute);
  memory("peak of a training step", y.peak);
  memory("  with recomputation", y.peak_recompute);
  memory("KV cache, bfloat16", double(c.batch) * c.kv_cache);
  memory("decoding: weights and cache", c.inference_peak());
  if (!pricing.machine.empty()) out += time_lines(a, pricing);
  return out;
}

std::string account_table(const std::vector<Account>& accounts, const Pricing& pricing) {
  std::string out =
      fmt::format("{:<15}{:>4}{:>6}{:>8}{:>10}{:>9}{:>9}{:>8}{:>10}{:>7}{:>9}{:>9}{:>9}{:>9}{:>8}{}\n",
                  "design", "L", "d", "d / L", "params", "own", "body", "attn", "residual", "of", "forward",
                  "backward", "peak", "peak re", "KV", pricing.machine.empty() ? "" : "    step");
  out += fmt::format("{:<15}{:>4}{:>6}{:>8}{:>10}{:>9}{:>9}{:>8}{:>10}{:>7}{:>9}{:>9}{:>9}{:>9}{:>8}{}\n", "",
                     "", "", "", "M", "M", "TFLOP", "%", "GFLOP", "body %", "TFLOP", "TFLOP", "GB", "GB",
                     "MB", pricing.machine.empty() ? "" : "      s");
  for (const Account& a : accounts) {
    const Cost& c = a.cost;
    const Work& f = c.flops.forward;
    out += fmt::format(
        "{:<15}{:>4}{:>6}{:>8.2f}{:>10.2f}{:>9.3f}{:>9.3f}{:>8.1f}{:>10.2f}{:>7.2f}{:>9.3f}{:>9.3f}{:>9.2f}{:"
        ">9.2f}{:>8.1f}",
        a.design, c.model.n_layers, c.model.d_model, double(c.model.d_model) / c.model.n_layers,
        double(c.parameters.total()) * mega, double(c.parameters.residual) * mega, f.body() * tera,
        100 * f.attention_share(), f.residual * giga, 100 * f.residual / f.body(), f.total() * tera,
        c.flops.backward.total() * tera, c.memory.peak * giga, c.memory.peak_recompute * giga,
        c.kv_cache * mega);
    out +=
        pricing.machine.empty()
            ? "\n"
            : fmt::format("{:>8.3g}\n", time_at_least(c, pricing.flops_per_s, pricing.bytes_per_s).step_s());
  }
  if (!pricing.machine.empty())
    out += fmt::format("step: the least time of one step on {}, an estimate from {}, not measured\n",
                       pricing.machine, pricing.source);
  return out;
}

std::string account_notes() {
  return "\nWhat is counted: the model's own code, run without data. +, *, / and every function are one FLOP "
         "each, a\n"
         "multiply-add two; the causal attention is half of the square. Body: products and attention of the "
         "blocks, the same for\n"
         "every design. Residual design: all between the embedding, the sublayers and the head but norms; "
         "its products with it.\n"
         "Backward: two products for each, attention's scores once more, and what row programs form again. "
         "GB and MB are 1e9\n"
         "and 1e6 bytes; bytes moved count each array once a pass, in float32. The peak is that of tensors "
         "in one training step\n"
         "(float32, AdamW) and equals this library's on a CPU of so many threads. KV cache: keys and values "
         "of one sequence in\n"
         "bfloat16; depth slots (MoDA) are read by their own token only and take none.\n";
}

}  // namespace depthbench::app
