"""Does model.py say what the golden cases say? Logits to 1e-10, loss, and every gradient, in float64."""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file

from model import DESIGNS, Config, Model, shapes

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests/golden"
LIMITS = {"logits": 1e-10, "loss": 1e-10, "gradients": 2e-7}  # compact cases store gradients as float32


def error(has, needs):
    return float((has - needs).detach().abs().max() / needs.abs().max().clamp_min(1e-7))


def config_of(case):
    names = ("design", "vocab_size", "d_model", "n_layers", "n_heads", "n_kv_heads", "ffn_hidden", "rope_theta", "norm_eps")
    return Config(**{name: case[name] for name in names}, options=case["design_options"])


def check_case(folder):
    case, tensors = json.loads((folder / "case.json").read_text()), load_file(folder / "tensors.safetensors")
    c = config_of(case)
    p = {name: tensors["param." + name].double().requires_grad_() for name in shapes(c)}
    missing = {n[6:] for n in tensors if n.startswith("param.")} - p.keys()
    if missing:
        raise SystemExit(f"{folder.name}: model.py has no {sorted(missing)}")
    model = Model(c, p, case["seq_len"])
    loss = model.loss(tensors["tokens"], tensors["targets"])
    loss.backward()
    logits = model.logits(tensors["tokens"]).view(tensors["logits"].shape)
    grads = max(error(t.grad, tensors["grad." + n].double()) for n, t in p.items() if tensors["grad." + n].abs().max() > 1e-7)
    return {"logits": error(logits, tensors["logits"]), "loss": error(loss, tensors["loss"]), "gradients": grads}


def check(designs=DESIGNS):
    """Returns the lines to print; raises SystemExit where a limit is passed."""
    lines = []
    for design in designs:
        worst = {}
        folders = [GOLDEN / f"{design}_{tag}" for tag in ("tiny", "extra", "medium", "init")]
        for folder in folders:
            for what, e in check_case(folder).items():
                if not e < LIMITS[what]:
                    raise SystemExit(f"{folder.name}: {what} differ by {e:.1e}, needs {LIMITS[what]:.0e}")
                worst[what] = max(worst.get(what, 0), e)
        lines.append(f"{design:<9} {len(folders)} golden cases: " + ", ".join(f"{what} {e:.0e}" for what, e in worst.items()))
    return lines


if __name__ == "__main__":
    torch.set_num_threads(2)
    print("\n".join(check(sys.argv[1:] or DESIGNS)))
