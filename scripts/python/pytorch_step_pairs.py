# SPDX-License-Identifier: BSD-3-Clause
"""Steps of DistZO2 and of PyTorch MeZO (pytorch_mezo.py) in turn; writes what they took as JSON."""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = 5  # steps of the longer of two runs, whose difference leaves the start out
SETS = ["zo/kind=gaussian", "zo/learning rate=1e-6", "zo/schedule=constant", "data/train examples=all",
        "data/dev examples=0", "data/test=", "output/write models=never"]


def child_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(folder, steps, seed, environment):
    """CPU seconds, metrics of the steps and summary of a run."""
    words = [ROOT / "build/release/bin/distzo2", "train", ROOT / "inputs/smollm2_sst2.yaml"]
    for value in [*SETS, f"zo/steps={steps}", f"zo/seed={seed}", f"output/folder={folder}"]:
        words += ["--set", value]
    begun = child_cpu_seconds()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    taken = child_cpu_seconds() - begun
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return taken, [line for line in lines if "g" in line], json.loads((folder / "summary.json").read_text())


def our_steps(pair, environment):
    with tempfile.TemporaryDirectory() as folder:
        short, _, _ = train(pathlib.Path(folder) / "short", 1, pair + 1, environment)
        long, steps, summary = train(pathlib.Path(folder) / "long", LONG, pair + 1, environment)
    later = steps[1:]
    return {"cpu_s": (long - short) / (LONG - 1), "wall_s": statistics.median(s["seconds"] for s in later),
            "tokens": statistics.mean(s["tokens"] for s in later)}, summary


def spread(rows):
    def of(key):
        values = [row[key] for row in rows]
        return {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {key: of(key) for key in ("cpu_s", "wall_s", "tokens")}


def main():
    parser = argparse.ArgumentParser(prog="results_pytorch_step", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/step_smollm2_vs_pytorch.json")
    args = parser.parse_args()
    environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    load = os.getloadavg()
    peer = subprocess.Popen(
        [sys.executable, ROOT / "scripts/python/pytorch_mezo.py", ROOT / "models/smollm2-135m-instruct",
         os.path.join(os.environ["SST2"], "train.tsv"), "--threads", str(args.threads)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    version = json.loads(peer.stdout.readline())
    ours, theirs = [], []
    for pair in range(args.pairs):
        taken, summary = our_steps(pair, environment)
        ours.append(taken)
        print("", file=peer.stdin, flush=True)
        theirs.append(json.loads(peer.stdout.readline()))
        print(f"pair {pair + 1}: {ours[-1]['wall_s']:.2f} s against {theirs[-1]['wall_s']:.2f} s", flush=True)
    peer.stdin.close()
    peer.wait()
    args.output.write_text(json.dumps({
        "what": "one step of MeZO, SmolLM2-135M, fp32, 16 SST-2 sentences: DistZO2 against PyTorch MeZO as published "
                "(torch.normal a parameter, three perturbations and one update in place)",
        "made_by": f"scripts/results_pytorch_step --threads {args.threads} --pairs {args.pairs}",
        "threads": args.threads, "pairs": args.pairs,
        "how": f"in turn on one machine; a pair is {LONG - 1} steps of DistZO2 (CPU: a run of {LONG} steps less a run of 1; "
               f"wall: median of its steps 2 to {LONG}) and one step of PyTorch after a warm-up; CPU is user and system "
               "time of the process",
        "load_average_before": load, "load_average_after": os.getloadavg(),
        "ours": spread(ours), "pytorch": spread(theirs),
        "ratio_cpu_of_pairs": [a["cpu_s"] / b["cpu_s"] for a, b in zip(ours, theirs)],
        "ratio_wall_of_pairs": [a["wall_s"] / b["wall_s"] for a, b in zip(ours, theirs)],
        **{key: summary[key] for key in ("git_hash", "arithmetic", "machine")}, **version}, indent=2) + "\n")
    print(args.output)


if __name__ == "__main__":
    main()
