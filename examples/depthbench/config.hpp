// Everything a run is told: struct defaults < a TOML file < key=value on the command line.
// Each key stands once, in visit_keys(); reading, writing, comparing and "did you mean" all walk that list.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "depthbench/train/config.hpp"

namespace depthbench::app {

struct DataConfig {
  std::string text;               // a text file, or a folder of documents; bytes are the tokens
  std::string tokens;             // a token file, or a folder of them
  std::string format = "auto";    // of data.tokens: auto, raw_u16, raw_u32, npy, llmc
  std::int64_t eod = -1;          // id that ends a document; -1: none, or the format's own
  std::int64_t vocab_size = 0;    // 0: the format's own, or the largest id + 1
  std::int64_t piece_tokens = 0;  // cut a text at blank lines into pieces of so many tokens or more; 0: no
  double held_out = 0.05;         // share that is kept for validation
  std::string hold_out = "last";  // last or random documents
  std::string validation = "packed";  // packed windows, or one instance a document
};

struct ShapeConfig {  // 0: as for model.*
  int n_layers = 0, d_model = 0, n_heads = 0, n_kv_heads = 0, ffn_hidden = 0;
};

struct SweepConfig {
  std::vector<std::string> designs;
  std::vector<ShapeConfig> shapes;
  std::vector<double> lrs;
  std::vector<std::uint64_t> seeds;
  double budget = 0;           // parameters; 0: the shapes are given
  std::vector<int> layers;     // depths of the shapes that the budget gives
};

struct RunConfig {
  ModelConfig model{.vocab_size = 0, .n_heads = 0, .n_kv_heads = 0, .ffn_hidden = 0};  // 0: see resolve()
  std::string design = "pre_ln";
  std::map<std::string, double> options;  // residual.OPTION, or residual.DESIGN.OPTION for that design alone
  TrainConfig train;
  std::string activations = "keep", precision = "fp32";
  std::int64_t eval_every = 0;  // steps; 0: at the end only
  DataConfig data;
  int threads = 0;                      // 0: as many as the machine has
  std::string device = "cpu";           // or cuda:0
  std::int64_t checkpoint_every = 200;  // steps; 0: at the end only
  std::int64_t log_every = 10;          // steps between plain lines
  std::int64_t statistics_every = 0;    // steps between layer statistics; 0: none
  bool weights = false;  // at the end also weights.safetensors, without the optimizer's moments
  SweepConfig sweep;
};

// v(key, value, meaning); for a value out of a few: v(key, value, meaning, choices).
template <class Config, class V>
void visit_keys(Config& c, V&& v) {
  using Choices = std::vector<std::string_view>;
  v("model.d_model", c.model.d_model, "width d");
  v("model.n_layers", c.model.n_layers, "blocks L, of attention and FFN");
  v("model.n_heads", c.model.n_heads, "0: heads of about 32 channels");
  v("model.n_kv_heads", c.model.n_kv_heads, "0: as many as heads");
  v("model.ffn_hidden", c.model.ffn_hidden, "0: 8 d / 3, rounded up to a multiple of 16");
  v("model.vocab_size", c.model.vocab_size, "0: that of the data");
  v("model.rope_theta", c.model.rope_theta, "base of the rotary positions");
  v("model.norm_eps", c.model.norm_eps, "inside the root of the norms");
  v("model.init_std", c.model.init_std, "of initial matrices, truncated at 3 of them");
  v("residual.design", c.design, "pre_ln, hc, attn_res, ...; other keys of this section are its options");
  v("train.seq_len", c.train.seq_len, "tokens of a window");
  v("train.global_batch_tokens", c.train.batch_tokens, "tokens of an optimizer step");
  v("train.micro_batch", c.train.micro_batch, "windows of one forward pass");
  v("train.steps", c.train.steps, "0: from tokens_per_parameter");
  v("train.tokens_per_parameter", c.train.tokens_per_parameter, "of all parameters");
  v("train.lr", c.train.lr, "peak learning rate");
  v("train.warmup_fraction", c.train.warmup_fraction, "of the steps, linear from 0");
  v("train.final_lr_fraction", c.train.final_lr_fraction, "of the peak, at the last step (cosine)");
  v("train.seed", c.train.seed, "of the initial values");
  v("train.data_seed", c.train.data_seed, "of the order of windows");
  v("train.activations", c.activations, "recompute: less memory, the same bits",
    Choices{"keep", "recompute"});
  v("train.precision", c.precision, "of products; bf16_pure: of parameters and moments too",
    Choices{"fp32", "bf16", "bf16_pure"});
  v("train.capture", c.train.capture, "on a GPU: a step is captured once and replayed as a CUDA graph");
  v("train.gradient_parts", c.train.gradient_parts, "of a batch, shared out to processes; the same bits on any number of them; 0: one a process");
  v("train.eval_every", c.eval_every, "steps between validations; 0: at the end only");
  v("optimizer.beta1", c.train.adamw.beta1, "AdamW");
  v("optimizer.beta2", c.train.adamw.beta2, "AdamW");
  v("optimizer.eps", c.train.adamw.eps, "AdamW");
  v("optimizer.weight_decay", c.train.adamw.weight_decay, "decoupled");
  v("optimizer.clip", c.train.adamw.clip, "of the global gradient norm; 0: none");
  v("data.text", c.data.text, "a text file, or a folder of documents; bytes are the tokens");
  v("data.tokens", c.data.tokens, "a token file, or a folder of them");
  v("data.format", c.data.format, "of data.tokens",
    Choices{"auto", "text", "raw_u16", "raw_u32", "npy", "llmc"});
  v("data.eod", c.data.eod, "id that ends a document; -1: none, or the format's own");
  v("data.vocab_size", c.data.vocab_size, "0: the format's own, or the largest id + 1");
  v("data.piece_tokens", c.data.piece_tokens,
    "cut a text at blank lines into documents of so many tokens or more");
  v("data.held_out", c.data.held_out, "share that is kept for validation");
  v("data.hold_out", c.data.hold_out, "which documents", Choices{"last", "random"});
  v("data.validation", c.data.validation, "windows, or one instance a document",
    Choices{"packed", "documents"});
  v("run.threads", c.threads, "0: as many as the machine has");
  v("run.device", c.device, "cpu; cuda:0 where the app was built with CUDA");
  v("run.checkpoint_every", c.checkpoint_every, "steps; 0: at the end only");
  v("run.log_every", c.log_every, "steps between lines when the output is no terminal");
  v("run.statistics_every", c.statistics_every, "steps between sizes of states and gradients by block; 0: none");
  v("run.weights", c.weights, "at the end also weights.safetensors, without the optimizer's moments");
}
// The grid of `depthbench sweep`.
template <class Config, class V>
void visit_sweep_keys(Config& c, V&& v) {
  v("sweep.designs", c.sweep.designs, "e.g. pre_ln,hc");
  v("sweep.shapes", c.sweep.shapes,
    "L x d, e.g. 4x64,8x48; in TOML also { n_layers = 4, d_model = 64, n_heads = 2 }");
  v("sweep.budget", c.sweep.budget,
    "parameters of every shape, e.g. 3e6: of each depth of sweep.layers the nearest width, in place of sweep.shapes");
  v("sweep.layers", c.sweep.layers, "e.g. 4,8,16");
  v("sweep.lrs", c.sweep.lrs, "e.g. 1e-3,3e-3");
  v("sweep.seeds", c.sweep.seeds, "e.g. 0,1");
}

// A value as it was written: in TOML with a kind, on the command line as bare text.
struct Value {
  enum class Kind { bare, text, integer, real, boolean, list, table, other } kind = Kind::bare;
  std::string text;                      // of everything but lists and tables
  std::vector<Value> items;              // of a list
  std::map<std::string, Value> members;  // of a table
};
struct Setting {
  std::string key, where;  // where: "demo.toml:7" or "command line"
  Value value;
};

enum class Command { train, sweep };  // sweep.* are keys of sweep only
// "train.lr=1e-3" -> Setting; throws config_error if there is no '='
Setting setting_of(std::string_view text);
// The settings of a TOML file (config_file.cpp); relative data paths are taken from its folder.
//   throws file_error, config_error
std::vector<Setting> read_settings(const std::string& path);
std::vector<Setting> parse_settings(std::string_view toml, const std::string& name,
                                    const std::string& folder);
//   throws config_error: unknown key (with the nearest one), wrong kind of value
void apply(RunConfig& config, const Setting& setting, Command command);

// Fills in what follows from other keys (heads, FFN width, vocabulary) and checks everything.
void resolve(RunConfig& config, std::int64_t data_vocab);
// The part of it that turns words into the library's enums.
void settle_words(RunConfig& config);
// The options that hold for config.design; designs: those that there are.
std::map<std::string, double> options_of(const RunConfig& config, const std::vector<std::string>& designs);

// As TOML, one section after the other, with the meanings as comments; reading it back gives the same config.
std::string to_toml(const RunConfig& config);
// "train.lr is 0.001 there and 0.002 here", ...: where two runs differ; run.* does not count.
std::vector<std::string> differences(const RunConfig& there, const RunConfig& here);

// The nearest of the names by edit distance.
std::string nearest(std::string_view name, const std::vector<std::string>& names);

}  // namespace depthbench::app
