"""Training steps in PyTorch on a GPU, one JSON line each, at the shapes of `tests/gpu/bench.cu step`: bf16 autocast, eager and
torch.compile. scripts/gpu_check runs it where PyTorch is installed.   --dry: on the CPU, at a tiny shape: does it work?"""
import argparse
import json
import sys
import time

import torch

from model import DESIGNS, Config, Model, initial_values, no_decay

SHAPES = [(640, 70, 10), (1024, 24, 16)]


def time_step(design, d, layers, heads, T, batch, device, compile):
    c = Config(design, 32000 if device == "cuda" else 97, d, layers, heads, heads, -(-8 * d // 48) * 16)
    p = {name: torch.nn.Parameter(x.detach().to(device)) for name, x in initial_values(c).items()}
    model = Model(c, p, T, compile=compile)
    model.rope = tuple(x.to(device) for x in model.rope)
    groups = [{"params": [t for n, t in p.items() if no_decay(n) == flag], "weight_decay": 0.0 if flag else 0.1} for flag in (False, True)]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=device == "cuda")
    tokens = torch.randint(c.vocab_size, (batch, T + 1), generator=torch.Generator().manual_seed(1)).to(device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None

    def step():
        with torch.autocast(device, torch.bfloat16):
            loss = model.loss(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    step()
    best = float("inf")
    for _ in range(3):
        wait()
        start = time.perf_counter()
        step()
        wait()
        best = min(best, time.perf_counter() - start)
    return best, torch.cuda.max_memory_allocated() if device == "cuda" else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", default=",".join(DESIGNS), help="default: %(default)s")
    parser.add_argument("--compile", action="store_true", help="torch.compile too: minutes of compilation")
    parser.add_argument("--dry", action="store_true")
    o = parser.parse_args()
    device = "cpu" if o.dry else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    for d, layers, heads in [(32, 2, 2)] if o.dry else SHAPES:
        for design in o.designs.split(","):
            for compile in (False, True) if o.compile else (False,):
                if device == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                    torch.cuda.empty_cache()
                try:
                    seconds, memory = time_step(design, d, layers, heads, 16 if o.dry else 2048, 2 if o.dry else 4, device, compile)
                except torch.cuda.OutOfMemoryError:
                    seconds, memory = None, None
                print(json.dumps({"bench": "torch", "design": design, "d": d, "L": layers, "mode": "compile" if compile else "eager",
                                  "products": "bf16", "time_s": seconds, "memory_bytes": memory, "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
