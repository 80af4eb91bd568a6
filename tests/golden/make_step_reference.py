# SPDX-License-Identifier: BSD-3-Clause
"""Float64 reference of the zeroth-order step (design, section 1): ten steps on a tiny LLaMA, tied and untied.

Writes steps/reference.json, steps/weights_{tied,untied}.bin (fp32, the tensors one after another in canonical order) and
steps/theta_CASE.bin (theta after the last step, likewise). The forward pass is written out here, in float64 throughout;
z comes from zo_numpy.py. Run: python3 make_step_reference.py (numpy and PyTorch).
"""
import json
import math
import pathlib

import numpy as np
import torch

import zo_numpy

HERE = pathlib.Path(__file__).resolve().parent / "steps"
MODEL = dict(hidden=24, layers=2, heads=6, kv_heads=3, head_dim=4, ffn=32, vocab=61)
NORM_EPS, ROPE_THETA = 1e-5, 10000.0
STEPS, BATCH = 10, 4
CASES = [
    # name, tied, objective, difference, q, kind, weight decay, schedule, learning rate, epsilon, seed
    ("lm_central_1", True, "language model", "central", 1, "gaussian", 0.0, "constant", 1e-4, 1e-3, 7),
    ("lm_forward_3", True, "language model", "forward", 3, "gaussian", 0.1, "linear", 1e-4, 1e-3, 0),
    ("class_central_3", True, "classification", "central", 3, "rademacher", 0.1, "constant", 1e-4, 1e-3, 11),
    ("class_forward_3", True, "classification", "forward", 3, "gaussian", 0.0, "constant", 1e-4, 1e-3, 12),
    ("class_central_1_untied", False, "classification", "central", 1, "gaussian", 0.0, "linear", 2e-4, 1e-3, 1234567890123),
    ("class_forward_1_untied", False, "classification", "forward", 1, "rademacher", 0.1, "constant", 1e-4, 1e-3, 14),
    ("lm_central_3_untied", False, "language model", "central", 3, "gaussian", 0.1, "linear", 1e-4, 2e-3, 15),
    ("lm_forward_1_untied", False, "language model", "forward", 1, "rademacher", 0.0, "linear", 1e-4, 1e-3, 2**64 - 1),
]


def initial_weights(tied, rng):
    weights = {}
    for block in zo_numpy.llama_blocks(tied=tied, **MODEL):
        for name, shape in block:
            x = 1.0 + 0.1 * rng.standard_normal(shape) if len(shape) == 1 else 0.25 * rng.standard_normal(shape)
            weights[name] = x.astype(np.float32)
    return weights


def rms_norm(x, weight):
    return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + NORM_EPS)


def rotate(x):
    """Rotary embedding of x (heads, tokens, head_dim), halves paired."""
    half = x.shape[-1] // 2
    frequency = ROPE_THETA ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * frequency
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def log_probabilities(w, ids):
    """log p (tokens, vocab) of what follows each token of one sequence."""
    m = MODEL
    x = w["model.embed_tokens.weight"][torch.tensor(ids)]
    n = len(ids)
    mask = torch.full((n, n), -math.inf, dtype=torch.float64).triu(1)
    for i in range(m["layers"]):
        p = f"model.layers.{i}."
        h = rms_norm(x, w[p + "input_layernorm.weight"])
        split = lambda name, heads: (h @ w[p + name].T).view(n, heads, m["head_dim"]).transpose(0, 1)
        q = rotate(split("self_attn.q_proj.weight", m["heads"]))
        k = rotate(split("self_attn.k_proj.weight", m["kv_heads"])).repeat_interleave(m["heads"] // m["kv_heads"], 0)
        v = split("self_attn.v_proj.weight", m["kv_heads"]).repeat_interleave(m["heads"] // m["kv_heads"], 0)
        attention = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(m["head_dim"]) + mask, -1)
        x = x + (attention @ v).transpose(0, 1).reshape(n, -1) @ w[p + "self_attn.o_proj.weight"].T
        h = rms_norm(x, w[p + "post_attention_layernorm.weight"])
        gate = h @ w[p + "mlp.gate_proj.weight"].T
        x = x + (gate * torch.sigmoid(gate) * (h @ w[p + "mlp.up_proj.weight"].T)) @ w[p + "mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return torch.log_softmax(rms_norm(x, w["model.norm.weight"]) @ head.T, -1)


def token_scores(w, prompt, candidate):
    """log p of each of the candidate's tokens after the prompt."""
    log_p = log_probabilities(w, prompt + candidate[:-1])
    return [log_p[len(prompt) - 1 + i, token] for i, token in enumerate(candidate)]


def batch_loss(w, batch, objective):
    """The mean over all loss terms: the label's tokens, or the examples."""
    total, terms = 0.0, 0
    for e in batch:
        if objective == "language model":
            scores = token_scores(w, e["prompt"], e["candidates"][e["label"]])
            total, terms = total - sum(scores).item(), terms + len(scores)
        else:
            means = torch.stack([torch.stack(token_scores(w, e["prompt"], c)).mean() for c in e["candidates"]])
            total, terms = total - torch.log_softmax(means, 0)[e["label"]].item(), terms + 1
    return total / terms


def run_case(case, weights, examples, rng):
    name, tied, objective, difference, q, kind, wd, schedule, rate, eps, seed = case
    layout = zo_numpy.canonical_layout(zo_numpy.llama_blocks(tied=tied, **MODEL))
    theta = {n: torch.from_numpy(x.astype(np.float64)) for n, x in weights.items()}

    def direction(t, k):
        return {n: torch.from_numpy(zo_numpy.z(kind, seed, t, k, layout[n], x.numel())).view(x.shape) for n, x in theta.items()}

    def loss(scale, z, batch):
        return batch_loss({n: x + scale * z[n] for n, x in theta.items()} if scale else theta, batch, objective)

    steps = []
    for t in range(STEPS):
        indices = [int(i) for i in rng.choice(len(examples), BATCH, replace=False)]
        batch = [examples[i] for i in indices]
        directions = [direction(t, k) for k in range(1, q + 1)]
        if difference == "central":
            losses = [loss(s * eps, z, batch) for z in directions for s in (1, -1)]
            g = [(losses[2 * k] - losses[2 * k + 1]) / (2 * eps) for k in range(q)]
        else:
            losses = [loss(0, None, batch)] + [loss(eps, z, batch) for z in directions]
            g = [(losses[k + 1] - losses[0]) / eps for k in range(q)]
        lr = rate * (1 - t / STEPS) if schedule == "linear" else rate
        c = [-lr * x / q for x in g]
        for n, x in theta.items():
            if x.dim() > 1:
                x.mul_(1 - lr * wd)
            for scale, z in zip(c, directions):
                x.add_(z[n], alpha=scale)
        steps.append({"batch": indices, "lr": lr, "losses": losses, "g": g, "c": c})
    final = np.concatenate([x.numpy().reshape(-1) for x in theta.values()]).astype("<f4")
    final.tofile(HERE / f"theta_{name}.bin")
    print(f"{name:24} L {steps[0]['losses'][0]:.3f} -> {steps[-1]['losses'][0]:.3f}   g {[round(s['g'][0], 2) for s in steps]}")
    return {"name": name, "tied": tied, "objective": objective, "difference": difference, "directions": q, "kind": kind,
            "weight_decay": wd, "schedule": schedule, "learning_rate": rate, "epsilon": eps, "seed": seed, "steps": steps}


def make_examples(rng):
    """Prompts of several lengths; candidates of one token, and of several, some with a common beginning."""
    draw = lambda n: [int(x) for x in rng.integers(0, MODEL["vocab"], n)]
    examples = []
    for i in range(12):
        stem = draw(1)
        candidates = [draw(1), draw(1)] if i % 2 == 0 else [stem + draw(2), stem + draw(1), draw(3)]
        examples.append({"prompt": draw(3 + i % 7), "candidates": candidates, "label": int(rng.integers(len(candidates)))})
    return examples


def main():
    torch.set_num_threads(1)
    HERE.mkdir(exist_ok=True)
    rng = np.random.default_rng(20250711)
    examples = make_examples(rng)
    weights = {tied: initial_weights(tied, rng) for tied in (True, False)}
    for tied, w in weights.items():
        np.concatenate([x.reshape(-1) for x in w.values()]).astype("<f4").tofile(HERE / f"weights_{'tied' if tied else 'untied'}.bin")
    cases = [run_case(case, weights[case[1]], examples, rng) for case in CASES]
    tensors = {kind: [{"name": n, "shape": list(s)} for b in zo_numpy.llama_blocks(tied=kind == "tied", **MODEL) for n, s in b]
               for kind in ("tied", "untied")}
    reference = {"model": MODEL | {"norm_eps": NORM_EPS, "rope_theta": ROPE_THETA}, "tensors": tensors, "examples": examples,
                 "steps": STEPS, "cases": cases}
    (HERE / "reference.json").write_text(json.dumps(reference, indent=1) + "\n")


if __name__ == "__main__":
    main()
