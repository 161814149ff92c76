// A small MoDA, and the same in plain loops.
#pragma once
#include <complex>

#include "depthbench/model/transformer.hpp"
#include "depthbench/residual/moda.hpp"
#include "tests/tape/fixture.hpp"

namespace depthbench_test {

using namespace depthbench;
using Row = std::vector<double>;
using Matrix = std::vector<Row>;  // one row a token


inline ModelConfig moda_config(int layers, int heads, int kv_heads, int head) {
  ModelConfig c;
  c.vocab_size = 13;
  c.d_model = heads * head;
  c.n_layers = layers;
  c.n_heads = heads;
  c.n_kv_heads = kv_heads;
  c.ffn_hidden = 9;
  c.rope_theta = 50;
  c.norm_eps = 1e-2;
  return c;
}

// A random MoDA of two rows of tokens.
struct Moded {
  Cpu cpu{2};
  Tape<Cpu, double> tape{cpu};
  Transformer<Cpu, double> model;
  int batch = 2, seq;
  std::vector<std::int32_t> tokens;

  Moded(const ModelConfig& c, int seq_, std::unique_ptr<Residual<Cpu, double>> design = std::make_unique<Moda<Cpu, double>>()) : model(cpu, c, std::move(design)), seq(seq_) {
    model.initialize(1);
    for (int i = 0; i < batch * seq; ++i) tokens.push_back(std::int32_t(i * i + 3 * i) % c.vocab_size);
    randomize();
  }
  // Every parameter at a random value, a function of its name: gains near 1, matrices with rows of length about 1.
  void randomize() {
    for (auto& p : model.parameters().list()) {
      std::uint64_t seed = 0;
      for (const char letter : plain_name(p.name)) seed = 31 * seed + std::uint64_t(letter);
      const auto z = random_numbers(std::size_t(p.numel()), seed);
      const double scale = p.name.starts_with("embeddings") ? 1 : 1.2 / std::sqrt(double(p.shape.cols()));
      for (std::size_t i = 0; i < z.size(); ++i) p.value[i] = p.name.ends_with("norm.weight") ? 1 + 0.2 * z[i] : scale * z[i];
    }
  }
  static std::string plain_name(std::string name) {  // as in Pre-LN
    for (const std::string twice : {"attention.attention.", "feed_forward.feed_forward."})
      if (const auto at = name.find(twice); at != std::string::npos) name.erase(at, twice.size() / 2);
    return name;
  }
  Parameter<double>& at(const std::string& name) { return model.parameters()[name]; }

  Row logits() {
    auto v = copy_of(model.logits(tape, tokens, batch));
    tape.clear();
    return v;
  }
  VarOf<double> loss(Activations a = Activations::keep) { return model.loss(tape, tokens, tokens, batch, double(tokens.size()), a); }
  std::vector<Row> gradients(Activations a = Activations::keep) {
    model.parameters().clear_grads();
    tape.backward(loss(a));
    model.parameters().settle_grads();
    std::vector<Row> all;
    for (const auto& p : model.parameters().list()) all.emplace_back(p.grads().begin(), p.grads().end());
    return all;
  }

  // ---- plain loops
  Matrix times(const std::string& weight, const Matrix& x) {
    const auto& w = at(weight);
    Matrix y;
    for (const auto& row : x) {
      y.emplace_back();
      for (int o = 0; o < int(w.shape.rows()); ++o) {
        double sum = 0;
        for (std::size_t i = 0; i < row.size(); ++i) sum += w.value[std::size_t(o) * row.size() + i] * row[i];
        y.back().push_back(sum);
      }
    }
    return y;
  }
  Matrix norm(const std::string& gain, const Matrix& x) {
    Matrix y = x;
    for (auto& row : y) {
      double square = 0;
      for (const double a : row) square += a * a / double(row.size());
      for (std::size_t i = 0; i < row.size(); ++i) row[i] *= at(gain).value[i] / std::sqrt(square + model.config().norm_eps);
    }
    return y;
  }
  Row turned(Row x, int t) {  // one head
    const std::size_t half = x.size() / 2;
    for (std::size_t j = 0; j < half; ++j) {
      const auto z = std::complex(x[j], x[j + half]) * std::polar(1.0, t * std::pow(model.config().rope_theta, -double(j) / double(half)));
      x[j] = z.real();
      x[j + half] = z.imag();
    }
    return x;
  }
  struct Slot { Matrix k, v; };
  Matrix attention(const Matrix& q, const Matrix& k, const Matrix& v, const std::vector<Slot>& slots) {
    const auto& c = model.config();
    const auto head = [&](const Row& row, int a) { return Row(row.begin() + a * c.head_dim(), row.begin() + (a + 1) * c.head_dim()); };
    Matrix out(q.size());
    for (int b = 0; b < batch; ++b) for (int t = 0; t < seq; ++t) for (int a = 0; a < c.n_heads; ++a) {
      const int kv = a / (c.n_heads / c.n_kv_heads);
      const auto row = std::size_t(b * seq + t);
      const Row query = turned(head(q[row], a), t);
      Matrix keys, values;
      for (int u = 0; u <= t; ++u) {
        keys.push_back(turned(head(k[std::size_t(b * seq + u)], kv), u));
        values.push_back(head(v[std::size_t(b * seq + u)], kv));
      }
      for (const auto& s : slots) {
        keys.push_back(head(s.k[row], kv));
        values.push_back(head(s.v[row], kv));
      }
      Row p;
      double sum = 0;
      for (const auto& key : keys) {
        double z = 0;
        for (std::size_t j = 0; j < key.size(); ++j) z += query[j] * key[j];
        p.push_back(std::exp(z / std::sqrt(double(c.head_dim()))));
        sum += p.back();
      }
      for (int j = 0; j < c.head_dim(); ++j) {
        double o = 0;
        for (std::size_t e = 0; e < p.size(); ++e) o += p[e] / sum * values[e][std::size_t(j)];
        out[row].push_back(o);
      }
    }
    return out;
  }
  static void add_to(Matrix& x, const Matrix& y) {
    for (std::size_t r = 0; r < x.size(); ++r) for (std::size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
  }
  Row formula() {
    const auto& c = model.config();
    Matrix x;
    for (const auto token : tokens) {
      const double* e = at("embeddings.weight").value + token * c.d_model;
      x.emplace_back(e, e + c.d_model);
    }
    std::vector<Slot> slots;
    for (int i = 0; i < c.n_layers; ++i) {
      const std::string block = fmt::format("blocks.{}.", i), att = block + "attention.attention.", ffn = block + "feed_forward.feed_forward.";
      Matrix u = norm(block + "attention_norm.weight", x);
      const Matrix k = times(att + "w_k.weight", u), v = times(att + "w_v.weight", u);
      add_to(x, times(att + "w_out.weight", attention(times(att + "w_q.weight", u), k, v, slots)));
      slots.push_back({k, v});
      u = norm(block + "feed_forward_norm.weight", x);
      Matrix a = times(ffn + "w1.weight", u);
      const Matrix gate = times(ffn + "w3.weight", u);
      for (std::size_t r = 0; r < a.size(); ++r) for (std::size_t j = 0; j < a[r].size(); ++j) a[r][j] *= gate[r][j] / (1 + std::exp(-a[r][j]));
      add_to(x, times(ffn + "w2.weight", a));
      if (i + 1 == c.n_layers) break;
      Slot s;
      for (const auto& row : times(block + "feed_forward.kv_proj.weight", u)) {
        s.k.emplace_back(row.begin(), row.begin() + c.kv_width());
        s.v.emplace_back(row.begin() + c.kv_width(), row.end());
      }
      slots.push_back(s);
    }
    Row all;
    for (const auto& row : times("lm_head.w_out.weight", norm("lm_head.norm.weight", x))) all.insert(all.end(), row.begin(), row.end());
    return all;
  }
};

}  // namespace depthbench_test
