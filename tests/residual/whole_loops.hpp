// Whole models of the ten designs by plain loops in double, one sequence at a time, from the formulas of tests/golden/README.md
// and nothing of the library but the names and values of parameters. Slow, short, and of general form.
#pragma once
#include <cmath>
#include <functional>
#include <map>

#include "depthbench/model/config.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench_test {

struct WholeLoops {
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;  // one a token
  using Branch = std::function<Row(int k, int t, const Row& u)>;

  std::string design;
  std::map<std::string, double> options;
  depthbench::ModelConfig c;
  std::function<const double*(const std::string&)> at;  // a parameter's values

  int K() const { return c.sublayers(); }
  int option(const char* name, int fallback) const { return options.count(name) ? int(options.at(name)) : fallback; }

  // ---- pieces
  static Row plus(double a, const Row& x, const Row& y) {  // a x + y
    Row z(y);
    for (std::size_t i = 0; i < x.size(); ++i) z[i] += a * x[i];
    return z;
  }
  static Row norm(const Row& x, const double* g, double eps) {
    double square = 0;
    for (const double v : x) square += v * v;
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = (g ? g[i] : 1) * x[i] / std::sqrt(square / double(x.size()) + eps);
    return y;
  }
  Row times(const std::string& matrix, const Row& x, int out) const {
    const double* w = at(matrix + ".weight");
    Row y(std::size_t(out), 0);
    for (std::size_t o = 0; o < y.size(); ++o) for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    return y;
  }
  const double* gain(int k) const { return at(depthbench::sublayer_name(k) + "_norm.weight"); }
  const double* outer(int k) const {
    return at("blocks." + std::to_string(k / 2) + (k % 2 ? ".post_feed_forward" : ".post_attention") + "_norm.weight");
  }
  std::string weights(int k) const {
    const std::string name = depthbench::sublayer_name(k);
    return design != "moda" ? name : name + name.substr(name.rfind('.'));
  }
  Row turned(Row x, int t) const {  // every head of x by its position
    const int h = c.head_dim();
    for (std::size_t head = 0; head < x.size(); head += std::size_t(h)) for (int j = 0; j < h / 2; ++j) {
      double &a = x[head + std::size_t(j)], &b = x[head + std::size_t(j + h / 2)];
      const double angle = t * std::pow(c.rope_theta, -2.0 * j / h), p = a, q = b;
      a = p * std::cos(angle) - q * std::sin(angle);
      b = q * std::cos(angle) + p * std::sin(angle);
    }
    return x;
  }

  // ---- branches, over all tokens
  struct Slot { Rows k, v; };
  Rows attention(int k, const Rows& u, std::vector<Slot>& slots) const {
    const int h = c.head_dim(), kv = c.kv_width(), group = c.n_heads / c.n_kv_heads, T = int(u.size());
    Slot own;
    Rows q, key, y;
    for (int t = 0; t < T; ++t) {
      q.push_back(turned(times(weights(k) + ".w_q", u[std::size_t(t)], c.d_model), t));
      own.k.push_back(times(weights(k) + ".w_k", u[std::size_t(t)], kv));
      own.v.push_back(times(weights(k) + ".w_v", u[std::size_t(t)], kv));
      key.push_back(turned(own.k.back(), t));
    }
    for (int t = 0; t < T; ++t) {
      Row o(std::size_t(c.d_model), 0);
      for (int a = 0; a < c.n_heads; ++a) {
        const std::size_t from = std::size_t(a * h), g = std::size_t(a / group * h);
        std::vector<std::pair<double, const double*>> terms;  // score, values
        const auto score = [&](const Row& keys, const Row& values) {
          double s = 0;
          for (int j = 0; j < h; ++j) s += q[std::size_t(t)][from + std::size_t(j)] * keys[g + std::size_t(j)];
          terms.push_back({s / std::sqrt(double(h)), values.data() + g});
        };
        for (int s = 0; s <= t; ++s) score(key[std::size_t(s)], own.v[std::size_t(s)]);
        if (design == "moda") for (const Slot& slot : slots) score(slot.k[std::size_t(t)], slot.v[std::size_t(t)]);
        double sum = 0;
        for (const auto& [s, v] : terms) sum += std::exp(s);
        for (const auto& [s, v] : terms) for (int j = 0; j < h; ++j) o[from + std::size_t(j)] += std::exp(s) / sum * v[j];
      }
      y.push_back(times(weights(k) + ".w_out", o, c.d_model));
    }
    slots.push_back(own);
    return y;
  }
  Row ffn(int k, const Row& u) const {
    Row a = times(weights(k) + ".w1", u, c.ffn_hidden);
    const Row b = times(weights(k) + ".w3", u, c.ffn_hidden);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i] / (1 + std::exp(-a[i]));
    return times(weights(k) + ".w2", a, c.d_model);
  }
  // What sublayer k makes of its inputs u; MoDA's slots grow.
  Rows branch(int k, const Rows& u, std::vector<Slot>& slots) const {
    if (k % 2 == 0) return attention(k, u, slots);
    Rows y;
    for (const Row& row : u) y.push_back(ffn(k, row));
    if (design == "moda" && k + 1 < K()) {
      Slot slot;
      for (const Row& row : u) {
        const Row both = times(depthbench::sublayer_name(k) + ".kv_proj", row, 2 * c.kv_width());
        slot.k.emplace_back(both.begin(), both.begin() + c.kv_width());
        slot.v.emplace_back(both.begin() + c.kv_width(), both.end());
      }
      slots.push_back(slot);
    }
    return y;
  }

  // ---- the residual path: the read-outs of all tokens
  Rows one_stream(Rows x) const {
    std::vector<Slot> slots;
    for (int k = 0; k < K(); ++k) {
      Rows u;
      for (const Row& row : x) {
        u.push_back(design == "deepnorm" ? row : norm(row, gain(k), c.norm_eps));
        if (design == "lns") for (double& v : u.back()) v /= std::sqrt(k / 2 + 1.0);
      }
      const Rows y = branch(k, u, slots);
      for (std::size_t t = 0; t < x.size(); ++t) {
        if (design == "sandwich_ln") x[t] = plus(1, x[t], norm(y[t], outer(k), c.norm_eps));
        else if (design == "deepnorm") x[t] = layer_norm(plus(std::pow(K(), 0.25), x[t], y[t]), gain(k));
        else if (design == "keel" && k > 0) x[t] = norm(plus(k == 1 ? 1 : K(), x[t], y[t]), outer(k), c.norm_eps);
        else x[t] = plus(1, x[t], y[t]);
      }
    }
    return x;
  }
  Row layer_norm(Row x, const double* g) const {
    double mean = 0, square = 0;
    for (const double v : x) mean += v / double(x.size());
    for (double& v : x) {
      v -= mean;
      square += v * v;
    }
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= g[i] / std::sqrt(square / double(x.size()) + c.norm_eps);
    return x;
  }
  Rows streams(const Rows& embedding) const {
    const int n = option("n_streams", 4);
    std::vector<Slot> slots;
    std::vector<Rows> x;  // a token's streams
    for (const Row& row : embedding) x.emplace_back(std::size_t(n), row);
    for (int k = 0; k < K(); ++k) {
      Rows u;
      std::vector<Rows> maps;   // [t][o][i], rows are destinations
      Rows posts;               // [t][o]
      for (const Rows& s : x) {
        Row pre, post;
        Rows map;
        design == "hc" ? hc(k, s, pre, map, post) : mhc(k, s, pre, map, post);
        Row sum(std::size_t(c.d_model), 0);
        for (std::size_t i = 0; i < s.size(); ++i) sum = plus(pre[i], s[i], sum);
        u.push_back(norm(sum, gain(k), c.norm_eps));
        maps.push_back(map);
        posts.push_back(post);
      }
      const Rows y = branch(k, u, slots);
      for (std::size_t t = 0; t < x.size(); ++t) {
        Rows next;
        for (std::size_t o = 0; o < x[t].size(); ++o) {
          next.push_back(plus(posts[t][o], y[t], Row(std::size_t(c.d_model), 0)));
          for (std::size_t i = 0; i < x[t].size(); ++i) next[o] = plus(maps[t][o][i], x[t][i], next[o]);
        }
        x[t] = next;
      }
    }
    Rows out;
    for (const Rows& s : x) {
      Row sum(std::size_t(c.d_model), 0);
      for (const Row& row : s) sum = plus(design == "hc" ? 1 : 1.0 / n, row, sum);
      out.push_back(sum);
    }
    return out;
  }
  void hc(int k, const Rows& x, Row& pre, Rows& map, Row& post) const {
    const std::string name = depthbench::sublayer_name(k) + "_hyper_connection.";
    const std::size_t n = x.size(), m = n + 1;
    map.assign(n, Row(n));
    for (std::size_t s = 0; s < n; ++s) {
      const Row h = norm(x[s], nullptr, 1e-8);
      const auto dot = [&](const char* proj, std::size_t j, std::size_t columns) {
        double z = 0;
        const double* w = at(name + proj);
        for (std::size_t i = 0; i < h.size(); ++i) z += h[i] * w[i * columns + j];
        return std::tanh(z);
      };
      for (std::size_t j = 0; j < m; ++j) {
        const double a = at(name + "static_alpha")[s * m + j] + *at(name + "dynamic_alpha_scale") * dot("dynamic_alpha_proj", j, m);
        if (j == 0) pre.push_back(a);
        else map[j - 1][s] = a;
      }
      post.push_back(at(name + "static_beta")[s] + *at(name + "dynamic_beta_scale") * dot("dynamic_beta_proj", 0, 1));
    }
  }
  void mhc(int k, const Rows& x, Row& pre, Rows& map, Row& post) const {
    const std::string name = depthbench::sublayer_name(k) + "_hyper_connection.";
    const std::size_t n = x.size(), count = n * n + 2 * n;
    Row v;
    for (const Row& s : x) v.insert(v.end(), s.begin(), s.end());
    v = norm(v, nullptr, 1e-6);
    const auto argument = [&](const char* alpha, std::size_t j) {
      double m = 0;
      const double* phi = at(name + "phi");
      for (std::size_t i = 0; i < v.size(); ++i) m += v[i] * phi[i * count + j];
      return *at(name + alpha) * m + at(name + "b")[j];
    };
    for (std::size_t s = 0; s < n; ++s) pre.push_back(1 / (1 + std::exp(-argument("alpha_pre", s))));
    for (std::size_t s = 0; s < n; ++s) post.push_back(2 / (1 + std::exp(-argument("alpha_post", n + s))));
    map.assign(n, Row(n));
    for (std::size_t o = 0; o < n; ++o) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += map[o][i] = std::exp(argument("alpha_res", 2 * n + o * n + i));
      for (double& p : map[o]) p = p / sum + 1e-6;
    }
    for (int half = 0; half < 2 * option("sinkhorn_iters", 20) - 1; ++half) for (std::size_t line = 0; line < n; ++line) {
      const auto cell = [&](std::size_t i) -> double& { return half % 2 == 0 ? map[i][line] : map[line][i]; };
      double sum = 1e-6;
      for (std::size_t i = 0; i < n; ++i) sum += cell(i);
      for (std::size_t i = 0; i < n; ++i) cell(i) /= sum;
    }
  }
  Rows over_depth(const Rows& embedding) const {
    const int size = design == "attn_res" ? 1 : option("block_size", 0);
    std::vector<Slot> slots;
    std::vector<Rows> bank{embedding};
    Rows run;  // empty: none
    const auto mixture = [&](int k, std::vector<Rows> sources, std::size_t t) {
      if (!run.empty()) sources.push_back(run);
      const std::string name = k == K() ? "res" : "blocks." + std::to_string(k / 2) + (k % 2 ? ".mlp" : ".attn") + "_res";
      Row z, mix(std::size_t(c.d_model), 0);
      double sum = 0;
      for (const Rows& s : sources) {
        const Row key = norm(s[t], at(name + "_norm.weight"), 1e-5);
        double score = 0;
        const double* w = at(name + "_proj.weight");
        for (std::size_t i = 0; i < key.size(); ++i) score += key[i] * w[i];
        z.push_back(std::exp(score));
        sum += z.back();
      }
      for (std::size_t j = 0; j < sources.size(); ++j) mix = plus(z[j] / sum, sources[j][t], mix);
      return mix;
    };
    for (int k = 0; k < K(); ++k) {
      Rows u;
      for (std::size_t t = 0; t < embedding.size(); ++t)
        u.push_back(k == 0 ? norm(embedding[t], gain(0), c.norm_eps) : norm(mixture(k, bank, t), gain(k), 1e-5));
      if (k > 0 && k % size == 0) bank.push_back(std::exchange(run, {}));
      const Rows y = branch(k, u, slots);
      if (run.empty()) run.assign(y.size(), Row(std::size_t(c.d_model), 0));
      for (std::size_t t = 0; t < y.size(); ++t) run[t] = plus(1, y[t], run[t]);
    }
    Rows out;
    for (std::size_t t = 0; t < embedding.size(); ++t) out.push_back(mixture(K(), bank, t));
    return out;
  }

  // tokens of one sequence -> (T, V)
  Row logits(const std::vector<std::int32_t>& tokens) const {
    Rows x;
    for (const std::int32_t token : tokens) {
      const double* row = at("embeddings.weight") + std::ptrdiff_t(token) * c.d_model;
      x.emplace_back(row, row + c.d_model);
    }
    const bool depth = design == "attn_res" || design == "block_attn_res";
    const Rows out = depth ? over_depth(x) : design == "hc" || design == "mhc" ? streams(x) : one_stream(x);
    Row all;
    for (const Row& row : out) {
      const Row y = times("lm_head.w_out", norm(row, at("lm_head.norm.weight"), depth ? 1e-5 : c.norm_eps), c.vocab_size);
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }
};

}  // namespace depthbench_test
