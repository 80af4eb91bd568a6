# SPDX-License-Identifier: BSD-3-Clause
"""MeZO in PyTorch as its authors publish it, written anew: z is drawn a parameter at a time with torch.normal, theta is
perturbed in place three times a step and updated once; fp32, SST-2 sentences. Does a step for every line on standard
input and prints its wall and CPU seconds as a JSON line. The model computes the logits of each prompt's last token only,
which favours it."""

import argparse
import json
import resource
import sys
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

EPSILON, LEARNING_RATE, BATCH = 1e-3, 1e-6, 16


def perturb(parameters, seed, scale):
    torch.manual_seed(seed)
    for p in parameters:
        z = torch.normal(mean=0, std=1, size=p.data.size(), dtype=p.data.dtype)
        p.data = p.data + scale * z * EPSILON


def update(parameters, seed, g):
    torch.manual_seed(seed)
    for p in parameters:
        z = torch.normal(mean=0, std=1, size=p.data.size(), dtype=p.data.dtype)
        p.data = p.data - LEARNING_RATE * (g * z)


@torch.inference_mode()
def loss(model, batch, labels, words):
    logits = model(**batch, use_cache=False, logits_to_keep=1).logits[:, -1]
    return torch.nn.functional.cross_entropy(torch.log_softmax(logits, -1)[:, words], labels).item()


@torch.no_grad()
def step(model, parameters, batch, labels, words):
    seed = int(torch.randint(10**9, (1,)))
    perturb(parameters, seed, 1)
    plus = loss(model, batch, labels, words)
    perturb(parameters, seed, -2)
    minus = loss(model, batch, labels, words)
    perturb(parameters, seed, 1)
    update(parameters, seed, (plus - minus) / (2 * EPSILON))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("tsv")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    tokenizer.padding_side, tokenizer.pad_token = "left", tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.float32).eval()
    parameters = list(model.parameters())
    words = torch.tensor([tokenizer(w, add_special_tokens=False)["input_ids"][0] for w in (" terrible", " great")])
    with open(args.tsv, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(1)).tolist()

    def timed_step(i):
        picked = [rows[k] for k in order[i * BATCH:(i + 1) * BATCH]]
        batch = tokenizer([sentence.strip() + " It was" for sentence, _ in picked], return_tensors="pt", padding=True)
        labels = torch.tensor([int(label) for _, label in picked])
        wall, cpu = time.perf_counter(), cpu_seconds()
        step(model, parameters, batch, labels, words)
        return {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds() - cpu,
                "tokens": int(batch["attention_mask"].sum())}

    timed_step(0)  # warm-up
    print(json.dumps({"pytorch_version": torch.__version__}), flush=True)
    for i, _ in enumerate(sys.stdin, 1):
        print(json.dumps(timed_step(i)), flush=True)


if __name__ == "__main__":
    main()
