"""The same models in PyTorch, written plainly from docs/designs.md: tensors by the names they have in checkpoints.

rms_norm, scaled_dot_product_attention, cross_entropy and AdamW are PyTorch's own fused ones. N = B T tokens are rows, as in
the library. checked.py compares all of it with the golden cases before anything is timed.
"""
import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

DESIGNS = ("pre_ln", "hc", "mhc", "attn_res", "moda")


@dataclass
class Config:
    design: str
    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    ffn_hidden: int
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    options: dict = field(default_factory=dict)

    @property
    def head(self):
        return self.d_model // self.n_heads

    @property
    def streams(self):
        return self.options.get("n_streams", 4)


def sublayer(k):
    return f"blocks.{k // 2}.{'feed_forward' if k % 2 else 'attention'}"


def branch(c, k):
    return sublayer(k) + (("." + sublayer(k).split(".")[2]) if c.design == "moda" else "")


def mixer(c, k):
    return "res" if k == 2 * c.n_layers else f"blocks.{k // 2}.{'mlp' if k % 2 else 'attn'}_res"


def shapes(c):
    """Name -> (shape, initial value): 'normal' (std 0.02), a number, or a tensor."""
    d, f, kv, V, n = c.d_model, c.ffn_hidden, c.n_kv_heads * c.head, c.vocab_size, c.streams
    s = {"embeddings.weight": ((V, d), "normal"), "lm_head.norm.weight": ((d,), 1.0), "lm_head.w_out.weight": ((V, d), "normal")}
    for k in range(2 * c.n_layers):
        s[sublayer(k) + "_norm.weight"] = ((d,), 1.0)
        rows = {"w_q": (d, d), "w_k": (kv, d), "w_v": (kv, d), "w_out": (d, d)} if k % 2 == 0 else {"w1": (f, d), "w3": (f, d), "w2": (d, f)}
        for name, shape in rows.items():
            s[f"{branch(c, k)}.{name}.weight"] = (shape, "normal")
        at = sublayer(k) + "_hyper_connection."
        if c.design == "hc":
            alpha = torch.cat([torch.eye(n)[:, k % n:k % n + 1], torch.eye(n)], 1)
            s |= {at + "static_alpha": ((n, n + 1), alpha), at + "static_beta": ((n,), 1.0), at + "dynamic_alpha_proj": ((d, n + 1), 0.0),
                  at + "dynamic_beta_proj": ((d,), 0.0), at + "dynamic_alpha_scale": ((), 0.01), at + "dynamic_beta_scale": ((), 0.01)}
        if c.design == "mhc":
            b = torch.full((n * n + 2 * n,), -8.0)
            b[k % n], b[n:2 * n], b[2 * n::n + 1] = 8.0, 0.0, 0.0
            s |= {at + "phi": ((n * d, n * n + 2 * n), 0.0), at + "b": (tuple(b.shape), b)}
            s |= {at + alpha: ((), 0.01) for alpha in ("alpha_pre", "alpha_post", "alpha_res")}
        if c.design == "moda" and k % 2 and k // 2 + 1 < c.n_layers:
            s[sublayer(k) + ".kv_proj.weight"] = ((2 * kv, d), "normal")
    if c.design == "attn_res":
        for k in range(1, 2 * c.n_layers + 1):
            s |= {mixer(c, k) + "_proj.weight": ((1, d), 0.0), mixer(c, k) + "_norm.weight": ((d,), 1.0)}
    return s


def initial_values(c, seed=0):
    g = torch.Generator().manual_seed(seed)
    p = {}
    for name, (shape, value) in shapes(c).items():
        t = torch.randn(shape, generator=g) * 0.02 if isinstance(value, str) else torch.as_tensor(value).expand(shape).clone()
        p[name] = t.float().requires_grad_()
    return p


def no_decay(name):
    return name.endswith(("static_alpha", "static_beta", "_hyper_connection.b", "alpha_pre", "alpha_post", "alpha_res"))


# ---- branches
def rope_table(c, T, dtype):
    h = c.head // 2
    angle = torch.arange(T, dtype=torch.float64)[:, None] * c.rope_theta ** (-torch.arange(h, dtype=torch.float64) / h)
    return angle.cos().to(dtype), angle.sin().to(dtype)  # (T, h / 2)


def rotate(x, rope):  # (B, heads, T, h): channels j and j + h / 2 turn together
    a, b = x.chunk(2, -1)
    cos, sin = rope
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def heads(x, B, h):
    return x.view(B, -1, x.shape[-1] // h, h).transpose(1, 2)  # (B, heads, T, h)


def attention(u, wq, wk, wv, wo, rope, B, h, slots=None):
    """-> y, k, v; slots: keys and values of earlier layers, (B, KV heads, T, slots, h) each, or None."""
    k, v = F.linear(u, wk), F.linear(u, wv)
    Q, K, V = rotate(heads(F.linear(u, wq), B, h), rope), rotate(heads(k, B, h), rope), heads(v, B, h)
    group = Q.shape[1] // K.shape[1]
    if slots is None:
        o = F.scaled_dot_product_attention(Q, K, V, is_causal=True, enable_gqa=group > 1)
    else:  # one softmax over causal keys and the token's own slots
        T = Q.shape[2]
        K, V, SK, SV = (t.repeat_interleave(group, 1) for t in (K, V, *slots))
        scores = (Q @ K.transpose(-1, -2)).masked_fill(torch.ones(T, T, dtype=torch.bool, device=Q.device).triu(1), -math.inf)
        depth = torch.einsum("bath,batsh->bats", Q, SK.to(Q.dtype))
        p = torch.cat([scores, depth], -1).mul(h ** -0.5).softmax(-1).to(V.dtype)
        o = p[..., :T] @ V + torch.einsum("bats,batsh->bath", p[..., T:], SV.to(V.dtype))
    return F.linear(o.transpose(1, 2).reshape(u.shape[0], -1), wo), k, v


def ffn(u, w1, w3, w2):
    return F.linear(F.silu(F.linear(u, w1)) * F.linear(u, w3), w2)


# ---- residual paths
def norm(x, g, eps):
    return F.rms_norm(x, x.shape[-1:], g, eps)


def hc_read(x, alpha, beta, w_alpha, w_beta, s_alpha, s_beta, gain, eps):
    """x (N, n, d) -> u (N, d), maps (N, n, n) from source to destination, write weights (N, n)"""
    with torch.autocast("cpu", enabled=False):
        h = F.rms_norm(x, x.shape[-1:], None, 1e-8)
        a = alpha + s_alpha * torch.tanh(h @ w_alpha)  # (N, n, n + 1)
        b = beta + s_beta * torch.tanh(h @ w_beta)     # (N, n)
        return norm(torch.einsum("ns,nsd->nd", a[..., 0], x), gain, eps), a[..., 1:], b


def hc_write(x, maps, b, y):
    with torch.autocast("cpu", enabled=False):
        return torch.einsum("nst,nsd->ntd", maps, x) + b[..., None] * y[:, None, :].to(x.dtype)


def mhc_read(x, phi, bias, a_pre, a_post, a_res, gain, eps, iterations):
    """x (N, n, d) -> u (N, d), H_res (N, n, n) with destinations as rows, H_post (N, n)"""
    n = x.shape[1]
    with torch.autocast("cpu", enabled=False):
        v = x.flatten(1)
        m = (v @ phi) * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6)
        pre = torch.sigmoid(a_pre * m[:, :n] + bias[:n])
        post = 2 * torch.sigmoid(a_post * m[:, n:2 * n] + bias[n:2 * n])
        H = (a_res * m[:, 2 * n:] + bias[2 * n:]).view(-1, n, n).softmax(-1) + 1e-6
        H = H / (H.sum(-2, keepdim=True) + 1e-6)
        for _ in range(iterations - 1):
            H = H / (H.sum(-1, keepdim=True) + 1e-6)
            H = H / (H.sum(-2, keepdim=True) + 1e-6)
        return norm(torch.einsum("ns,nsd->nd", pre, x), gain, eps), H, post


def mhc_write(x, H, post, y):
    with torch.autocast("cpu", enabled=False):
        return torch.einsum("nts,nsd->ntd", H, x) + post[..., None] * y[:, None, :].to(x.dtype)


def mix(sources, w, g):  # sources (m, N, d)
    with torch.autocast("cpu", enabled=False):
        p = (norm(sources, g, 1e-5) @ w.view(-1)).softmax(0)  # (m, N)
        return torch.einsum("mn,mnd->nd", p, sources)


def mix_norm(sources, w, g, gain):
    return norm(mix(sources, w, g), gain, 1e-5)


COMPILED = ("attention", "ffn", "hc_read", "hc_write", "mhc_read", "mhc_write", "mix_norm", "norm")


class Model:
    """ops: the functions above by name, compiled or not."""

    def __init__(self, c, p, T, compile=False):
        self.c, self.p = c, p
        self.rope = rope_table(c, T, p["lm_head.norm.weight"].dtype)
        self.ops = {name: globals()[name] for name in COMPILED}
        if compile:
            self.ops = {name: torch.compile(f, dynamic=True if name == "mix_norm" or (name == "attention" and c.design == "moda") else False)
                        for name, f in self.ops.items()}

    def sublayer(self, k, u, B, slots=None):
        at = branch(self.c, k)
        if k % 2:
            return self.ops["ffn"](u, *(self.p[f"{at}.{w}.weight"] for w in ("w1", "w3", "w2"))), None, None
        return self.ops["attention"](u, *(self.p[f"{at}.{w}.weight"] for w in ("w_q", "w_k", "w_v", "w_out")), self.rope, B, self.c.head, slots)

    def gain(self, k):
        return self.p[sublayer(k) + "_norm.weight"]

    def read_out(self, x, B):
        return getattr(self, self.c.design)(x, B)

    def logits(self, tokens):
        B, T = tokens.shape
        x = F.embedding(tokens.flatten(), self.p["embeddings.weight"])
        eps = 1e-5 if self.c.design == "attn_res" else self.c.norm_eps
        return F.linear(self.ops["norm"](self.read_out(x, B), self.p["lm_head.norm.weight"], eps), self.p["lm_head.w_out.weight"])

    def loss(self, tokens, targets):
        logits = self.logits(tokens)
        return F.cross_entropy(logits if logits.dtype == torch.float64 else logits.float(), targets.flatten(), ignore_index=-100)

    def pre_ln(self, x, B):
        for k in range(2 * self.c.n_layers):
            x = x + self.sublayer(k, self.ops["norm"](x, self.gain(k), self.c.norm_eps), B)[0]
        return x

    def hc(self, x, B):
        x = x[:, None, :].expand(-1, self.c.streams, -1)
        names = ("static_alpha", "static_beta", "dynamic_alpha_proj", "dynamic_beta_proj", "dynamic_alpha_scale", "dynamic_beta_scale")
        for k in range(2 * self.c.n_layers):
            at = sublayer(k) + "_hyper_connection."
            u, maps, b = self.ops["hc_read"](x, *(self.p[at + name] for name in names), self.gain(k), self.c.norm_eps)
            x = self.ops["hc_write"](x, maps, b, self.sublayer(k, u, B)[0])
        return x.sum(1)

    def mhc(self, x, B):
        x = x[:, None, :].expand(-1, self.c.streams, -1)
        names = ("phi", "b", "alpha_pre", "alpha_post", "alpha_res")
        for k in range(2 * self.c.n_layers):
            at = sublayer(k) + "_hyper_connection."
            u, H, post = self.ops["mhc_read"](x, *(self.p[at + name] for name in names), self.gain(k), self.c.norm_eps,
                                              self.c.options.get("sinkhorn_iters", 20))
            x = self.ops["mhc_write"](x, H, post, self.sublayer(k, u, B)[0])
        return x.mean(1)

    def attn_res(self, x, B):
        sources = [x]
        weights = lambda k: (self.p[mixer(self.c, k) + "_proj.weight"], self.p[mixer(self.c, k) + "_norm.weight"])
        for k in range(2 * self.c.n_layers):
            u = (self.ops["norm"](x, self.gain(0), self.c.norm_eps) if k == 0
                 else self.ops["mix_norm"](torch.stack(sources), *weights(k), self.gain(k)))
            sources.append(self.sublayer(k, u, B)[0].to(x.dtype))
        return mix(torch.stack(sources), *weights(2 * self.c.n_layers))

    def moda(self, x, B):
        h, keys, values = self.c.head, [], []
        for k in range(2 * self.c.n_layers):
            u = self.ops["norm"](x, self.gain(k), self.c.norm_eps)
            slots = (torch.stack(keys, 3), torch.stack(values, 3)) if keys and k % 2 == 0 else None
            y, key, value = self.sublayer(k, u, B, slots)
            if k % 2 and k // 2 + 1 < self.c.n_layers:
                key, value = F.linear(u, self.p[sublayer(k) + ".kv_proj.weight"]).chunk(2, -1)
            if key is not None:
                keys.append(heads(key, B, h))
                values.append(heads(value, B, h))
            x = x + y
        return x
