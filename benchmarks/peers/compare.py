"""Whole training steps here and in PyTorch, on the same cores, taken in turn in one run: see run --help."""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import torch

from model import DESIGNS, Config, Model, initial_values, no_decay

ROOT = pathlib.Path(__file__).resolve().parents[2]
APP = ROOT / "build/depthbench"
SHAPES = {"256/8": (256, 8), "128/24": (128, 24)}
MODES = [("eager", "fp32"), ("eager", "bf16"), ("compile", "fp32"), ("compile", "bf16")]


def config_of(design, d, layers):
    n_heads = d // 64 if d >= 256 else d // 32  # as `depthbench bench` chooses
    return Config(design, 4096, d, layers, n_heads, n_heads, -(-8 * d // 48) * 16)  # FFN: 8 d / 3, up to a multiple of 16


def resident(key):  # MB of this process: VmRSS now, VmHWM at most
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) / 1024


def torch_step(design, d, layers, kind, precision, o):
    """Best seconds of a step, peak MB beyond what importing PyTorch takes, seconds until the first step was done."""
    torch.set_num_threads(o.threads)
    before = resident("VmRSS")
    c = config_of(design, d, layers)
    p = initial_values(c)
    model = Model(c, p, o.seq_len, compile=kind == "compile")
    groups = [{"params": [t for n, t in p.items() if no_decay(n) == flag], "weight_decay": 0.0 if flag else 0.1} for flag in (False, True)]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=1e-3, betas=(0.9, 0.95), eps=1e-8, fused=True)
    g = torch.Generator().manual_seed(1)
    tokens = torch.randint(c.vocab_size, (1, o.seq_len + 1), generator=g)
    targets = tokens[:, 1:].clone()
    targets[:, -1] = -100

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = model.loss(tokens[:, :-1], targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(p.values(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    step()
    best = 1e9
    for _ in range(o.repeats):
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    return {"time_s": best, "peak_mb": resident("VmHWM") - before, "first_s": first}


def in_child(f, *args):
    """f(*args) in a fork of this process, which has imported PyTorch but never computed: a fresh peak of memory each time."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            pathlib.Path("/proc/self/clear_refs").write_text("5")
            os.write(write, json.dumps(f(*args)).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(f"{args}: the child failed")
    return json.loads(text)


def ours(design, d, layers, precision, o):
    shape = ["--designs", design, "--d-model", str(d), "--layers", str(layers), "--seq-len", str(o.seq_len), "--vocab", "4096",
             "--threads", str(o.threads), "--precision", precision, "--json"]
    run = lambda what, *more: json.loads(subprocess.run([APP, "bench", what, *shape, *more], check=True, capture_output=True, text=True).stdout)
    step, memory = run("step", "--repeats", str(o.repeats)), run("memory")
    return {"time_s": step["time_s"], "peak_mb": memory["resident_bytes"] / 2**20}


def table(rows, o):
    """One line a design and shape: ms of each, and how many times as fast ours is as the best of PyTorch's at that precision."""
    columns = [f"{kind} {precision}" for kind, precision in MODES]
    lines = ["| design | d/L | " + " | ".join(f"{c} ms" for c in columns) + " | ours fp32 ms | ours bf16 ms | fp32, times as fast | bf16, times as fast "
             "| PyTorch MB, least | ours fp32 MB | memory |", "|" + "---|" * (len(columns) + 9)]
    for (design, shape), r in rows.items():
        best = lambda precision: min(r[f"{kind} {precision}"]["time_s"] for kind in ("eager", "compile") if f"{kind} {precision}" in r)
        ms = [f"{r[c]['time_s'] * 1e3:.0f}" if c in r else "-" for c in columns]
        least = min(r[c]["peak_mb"] for c in columns if c in r)
        fast = [f"{best(p) / r['ours ' + p]['time_s']:.2f}" for p in ("fp32", "bf16")]
        lines.append(f"| `{design}` | {shape} | " + " | ".join(ms) + f" | {r['ours fp32']['time_s'] * 1e3:.0f} | {r['ours bf16']['time_s'] * 1e3:.0f} | "
                     + " | ".join(fast) + f" | {least:.0f} | {r['ours fp32']['peak_mb']:.0f} | {r['ours fp32']['peak_mb'] / least:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="benchmarks/peers/run", description="Times whole training steps (forward, backward, AdamW with clipping) "
                                     "here and in PyTorch. First shows that the PyTorch models agree with the golden cases.")
    parser.add_argument("--quick", action="store_true", help="two designs, one small shape, two steps: does it work?")
    parser.add_argument("--designs", default=",".join(DESIGNS), help="default: %(default)s")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="d/L; default: %(default)s")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    o = parser.parse_args()
    designs, shapes = o.designs.split(","), {s: tuple(int(n) for n in s.split("/")) for s in o.shapes.split(",")}
    if o.quick:
        designs, shapes, o.seq_len, o.repeats = ["pre_ln", "attn_res"], {"128/3": (128, 3)}, 128, 2
    if unknown := set(designs) - set(DESIGNS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(DESIGNS)}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:o.threads])  # children too
    start = time.perf_counter()
    # in a process of its own: this one must not compute before it forks
    print(subprocess.run([sys.executable, "checked.py", *designs], check=True, capture_output=True, text=True).stdout, flush=True)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    print(f"{cpu}, {o.threads} cores, PyTorch {torch.__version__}, T {o.seq_len}, batch 1, V 4096, best of {o.repeats} steps\n", flush=True)
    rows = {}
    for shape, (d, layers) in shapes.items():
        for design in designs:
            r = rows[design, shape] = {}
            for precision in ("fp32", "bf16"):
                r["ours " + precision] = ours(design, d, layers, precision, o)
            for kind, precision in MODES:
                if kind == "eager" or not o.no_compile:
                    r[f"{kind} {precision}"] = in_child(torch_step, design, d, layers, kind, precision, o)
            print(f"{design:<9} {shape:<7}" + "".join(f"  {name} {v['time_s'] * 1e3:.0f} ms" for name, v in r.items()), file=sys.stderr, flush=True)
    print(table(rows, o))
    slowest = max(v.get("first_s", 0) for r in rows.values() for v in r.values())
    print(f"\nPyTorch MB: resident, beyond what importing it takes; ours: all of the process. First steps, compilation included, took up to "
          f"{slowest:.0f} s. {(time.perf_counter() - start) / 60:.1f} minutes in all.")


if __name__ == "__main__":
    main()
