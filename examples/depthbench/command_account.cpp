// depthbench account: parameters, FLOPs, bytes, memory and time of designs and shapes.
#include "account.hpp"
#include "bench_common.hpp"
#include "commands.hpp"
#include "depthbench/account/published_shapes.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

int narrowed(const char* what, std::int64_t v, std::int64_t least) {
  if (v < least || v > std::numeric_limits<int>::max())
    fail<config_error>("account: {} is {}, needs {} to {}", what, v, least, std::numeric_limits<int>::max());
  return int(v);
}

ModelConfig model_of(const AccountArgs& a) {
  ModelConfig c;
  c.n_layers = narrowed("--layers", a.layers, 1);
  c.d_model = narrowed("--d-model", a.d_model, 1);
  c.n_heads = narrowed("--heads", a.heads, 1);
  c.n_kv_heads = a.kv_heads == 0 ? c.n_heads : narrowed("--kv-heads", a.kv_heads, 0);
  c.vocab_size = narrowed("--vocab", a.vocab, 1);
  c.ffn_hidden = a.ffn != 0            ? narrowed("--ffn", a.ffn, 1)
                 : c.d_model < 1 << 26 ? ModelConfig::default_ffn(c.d_model)
                                       : c.d_model;
  check(c);
  return c;
}

Options options_of(const AccountArgs& a) {
  Options options;
  for (const auto& text : a.options) {
    const Setting s = setting_of(text);
    std::size_t used = 0;
    double value = 0;
    try {
      value = std::stod(s.value.text, &used);
    } catch (const std::exception&) {
    }
    if (used == 0 || used != s.value.text.size())
      fail<config_error>("account: --option {} needs a number", text);
    options[s.key] = value;
  }
  return options;
}

Pricing pricing_of(const AccountArgs& a, const ModelConfig& c) {
  Pricing p;
  if (!(a.tokens >= 0) || !(a.price >= 0))
    fail<config_error>("account: --tokens {} and --price {}, needs 0 or more of both", a.tokens, a.price);
  p.tokens = a.tokens;
  p.price_per_hour = a.price;
  if (a.device.empty()) {
    if (a.tokens > 0 || a.price > 0) fail<config_error>("account: --tokens and --price need a --device");
    return p;
  }
  for (const Machine& m : machines)
    if (m.name == a.device) {
      p.machine = std::string(m.name) + " (" + std::string(m.described) + ")";
      p.source = m.source;
      p.flops_per_s = m.flops_per_s;
      p.bytes_per_s = m.bytes_per_s;
    }
  if (a.device == "measured") {  // products of this width, of so many tokens as fill the caches
    Cpu cpu(0);
    ModelConfig small = c;
    small.vocab_size = std::min(c.vocab_size, 4096);
    p.machine = fmt::format("this machine ({} threads, {}, float32)", cpu.threads(), Cpu::gemm_name());
    p.source =
        "rates measured just now: matrix products of these widths, and a copy; the time itself is estimated "
        "from them";
    p.flops_per_s = gemm_flops_per_s(cpu, small, 1024, 1);
    p.bytes_per_s = copy_bytes_per_s(0, 2);
  }
  if (p.machine.empty()) {
    std::string names;
    for (const Machine& m : machines) names += std::string(m.name) + ", ";
    fail<config_error>("account: there is no device {}; there are {}measured", a.device, names);
  }
  return p;
}

}  // namespace

int account_command(const Engine& engine, const AccountArgs& args) {
  std::vector<std::string> designs = args.designs;
  if (designs.empty() && args.tier.empty()) designs = {"pre_ln"};
  if (designs.empty() || designs == std::vector<std::string>{"all"}) designs = engine.counted_designs();
  const std::vector<ModelConfig> shapes =
      args.tier.empty() ? std::vector{model_of(args)} : shapes_of_tier(args.tier);
  const Options options = options_of(args);
  const Pricing pricing = pricing_of(args, shapes.front());
  const CountOptions how{args.seq_len, args.batch, args.threads > 0 ? args.threads : 1, args.bf16};
  std::vector<Account> accounts;
  for (const ModelConfig& shape : shapes)
    for (const auto& design : designs)
      accounts.push_back({design, options, engine.account(design, options, shape, how)});
  if (!args.svg.empty()) {
    const auto files = write_account_pictures(accounts, args.svg);
    if (!args.json && !args.csv) fmt::print("pictures: {} in {}\n\n", fmt::join(files, ", "), args.svg);
  }
  if (args.json) {
    Json j = Json::array();
    for (const Account& a : accounts) j.push_back(account_json(a, pricing));
    fmt::print("{}\n", accounts.size() == 1 ? j[0].dump() : j.dump());
  } else if (args.csv) {
    fmt::print("{}", account_csv(accounts, pricing));
  } else {
    fmt::print("{}{}",
               accounts.size() == 1 ? account_text(accounts[0], pricing) : account_table(accounts, pricing),
               account_notes());
  }
  return 0;
}

}  // namespace depthbench::app
