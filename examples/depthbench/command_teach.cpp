// depthbench teach: the designs side by side, on one page: what each design's own page says and its code, how it is wired, what
// it costs, and what it looks like in trained models. Made from the sources and from runs, so that it cannot drift from them.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "commands.hpp"
#include "depth_sections.hpp"
#include "depthbench/io/atomic_file.hpp"
#include "report_page.hpp"
#include "run_set.hpp"
#include "svg.hpp"
#include "wiring.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

namespace fs = std::filesystem;

struct Page {  // of include/depthbench/residual/NAME.hpp
  std::string title, equation, notes, code;
};

std::string trimmed(const std::string& line) {  // a comment's text, its indentation beyond two columns kept
  std::string s = line.substr(std::min<std::size_t>(2, line.size()));
  if (s.starts_with(" ")) s.erase(0, 1);
  return s.starts_with("  ") ? s.substr(2) : s;
}

Page read_page(const fs::path& file) {
  std::ifstream in(file);
  if (!in) fail<file_error>("teach: {} cannot be opened", file.string());
  Page p;
  std::vector<std::string> paragraphs(1);
  std::string line;
  bool code = false;
  while (std::getline(in, line)) {
    if (line.starts_with("//") && !code) {
      const std::string text = trimmed(line);
      if (text.empty()) paragraphs.emplace_back();
      else paragraphs.back() += text + "\n";
    } else if (line.find("State open(") != std::string::npos || line.find("Variable read(") != std::string::npos) {
      code = true;  // the verbs; what the analyses ask and what is private comes after them
    } else if (code && (line.starts_with(" private:") || line.find("Variable read_out(") != std::string::npos ||
                        line.find("bool replace(") != std::string::npos || line.find("std::optional<Join>") != std::string::npos ||
                        line.find("void skip(") != std::string::npos || line.find("init_scale(") != std::string::npos)) {
      break;
    }
    if (code) p.code += line.size() > 2 ? line.substr(2) + "\n" : "\n";
  }
  p.title = paragraphs[0];
  if (paragraphs.size() > 1) p.equation = paragraphs[1];
  for (std::size_t i = 2; i < paragraphs.size(); ++i) p.notes += paragraphs[i];
  while (p.code.ends_with("\n\n")) p.code.pop_back();
  return p;
}

std::string costs(const Engine& engine, const std::vector<std::string>& designs, const ModelConfig& m, std::int64_t seq) {
  std::string body;
  const Cost base = engine.account("pre_ln", {}, m, {.seq_len = seq});
  for (const auto& design : designs) {
    const Cost c = engine.account(design, {}, m, {.seq_len = seq});
    const double flops = c.flops.forward.total() + c.flops.backward.total(), bytes = c.bytes.forward.total() + c.bytes.backward.total();
    const double flops0 = base.flops.forward.total() + base.flops.backward.total(), bytes0 = base.bytes.forward.total() + base.bytes.backward.total();
    body += fmt::format("<tr><td><a href=\"#{0}\">{0}</a></td><td>{1:+}</td><td>{2:+.2f} %</td><td>{3:+.1f} %</td><td>{4:.2f}</td></tr>\n", design,
                        c.parameters.residual, 100 * (flops / flops0 - 1), 100 * (bytes / bytes0 - 1), c.memory.peak / base.memory.peak);
  }
  return fmt::format("<p class=\"soft\">Beside Pre-LN, of one model: L = {}, d = {}, {} tokens. FLOPs and bytes of a training step, counted by running the model "
                     "without data (<code>depthbench account</code>).</p><div class=\"scroll\"><table><thead><tr><th>design</th><th>parameters</th>"
                     "<th>FLOPs</th><th>bytes moved</th><th>peak memory, times</th></tr></thead><tbody>{}</tbody></table></div>",
                     m.n_layers, m.d_model, seq, body);
}

}  // namespace

int teach_command(const Engine& engine, const TeachArgs& args) {
  const fs::path sources = fs::path(args.sources);
  std::vector<std::string> designs{"pre_ln", "sandwich_ln", "lns", "deepnorm", "keel", "hc", "mhc", "attn_res", "block_attn_res", "moda"};
  std::erase_if(designs, [&](const std::string& d) { return !fs::exists(sources / (d + ".hpp")); });
  if (designs.empty()) fail<file_error>("teach: {} holds no page of a design (pre_ln.hpp, ...); --sources names the folder", sources.string());
  RunSet set;
  if (!args.runs.empty()) set = find_run_set(engine, args.runs);

  std::string b = "<h1>Ten residual designs, side by side</h1>\n<p class=\"soft\">What carries a Transformer's stream from layer to layer. S is a sublayer (attention or "
                  "FFN), N a norm, k counts sublayers, i blocks. Every design is its four verbs: open, read, write, close.</p>\n";
  ModelConfig m;
  m.n_layers = 24, m.d_model = 1024, m.ffn_hidden = 2736, m.n_heads = m.n_kv_heads = 16, m.vocab_size = 50280;
  b += "<h2>What they cost</h2>\n" + costs(engine, designs, m, 4096);
  for (const auto& design : designs) {
    const Page p = read_page(sources / (design + ".hpp"));
    b += fmt::format("<section id=\"{0}\"><h2>{0}</h2>\n<p>{1}</p>\n<div class=\"side\"><figure>{2}</figure><pre><code>{3}</code></pre></div>\n"
                     "<pre class=\"notes\"><code>{4}</code></pre>\n<details><summary>the code</summary><pre><code>{5}</code></pre></details>\n",
                     design, escape_html(p.title), wiring_svg(design), escape_html(p.equation), escape_html(p.notes), escape_html(p.code));
    if (!set.folders.empty()) b += depth_multiples(set.results, design);
    b += "</section>\n";
  }
  const std::string html = page_of("Ten residual designs, side by side", b,
                                   ".side{display:grid;grid-template-columns:minmax(180px,260px) 1fr;gap:18px;align-items:start}.side>*{min-width:0}"
                                   ".notes{border:0;padding:0;color:var(--soft)}.wire{stroke:var(--ink);fill:none;stroke-width:1.6}"
                                   ".wire-box{fill:var(--paper);stroke:var(--ink);stroke-width:1.4}.wire-text{fill:var(--ink)!important}"
                                   "@media(max-width:640px){.side{grid-template-columns:1fr}}");
  const fs::path out = args.out.empty() ? fs::path("designs.html") : fs::path(args.out);
  write_file_atomically(out, [&](AtomicFile& f) { f.write(html); });
  fmt::print("{} designs\npage: {}\n", designs.size(), out.string());
  return 0;
}

}  // namespace depthbench::app
