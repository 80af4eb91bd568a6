# SPDX-License-Identifier: BSD-3-Clause
"""Streamed steps against what bounds them (bench stream), and two steps of a model larger than memory; JSON."""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from measuring import START, say

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/distzo2"
DECK = """model: {{shape: {shape}, weights: random, seed: 1}}
data: {{task: random tokens, sequence length: {tokens}, train examples: 4}}
zo: {{steps: 2, batch: 1, epsilon: 1e-3, learning rate: 1e-7, kind: gaussian}}
precision: {{storage: bf16, compute: bf16}}
memory: {{host budget: {budget}, scratch folder: {scratch}}}
output: {{folder: {scratch}/run}}
"""
# What is wanted: a step of at most 1.15 times the larger of the two, in at most 4.5 GiB for a budget of 4 GiB.
MOST_RATIO, MOST_MEMORY = 1.15, 4.5 / 4


def gib(size):
    return f"{size / 2**30:.2f} GiB"


def bytes_of(budget):
    number, unit = budget.split()
    return int(number) * {"MiB": 2**20, "GiB": 2**30}[unit]


def write_deck(scratch, shape, tokens, budget):
    path = scratch / f"{shape}-{tokens}.yaml"
    path.write_text(DECK.format(shape=shape, tokens=tokens, budget=budget, scratch=scratch))
    return path


def bench(scratch, shape, tokens, budget, repeats, small):
    """The turns of one process: disk, computing alone and streamed step one after another."""
    say(f"{shape}, 1 x {tokens} tokens, host budget {budget}: making the model, then {repeats} turns of two steps")
    words = [PROGRAM, "bench", "stream", write_deck(scratch, shape, tokens, budget), "--repeats", str(repeats), "--json"]
    turns = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout:
                turns.append(json.loads(line))
                if "turn" in turns[-1]:
                    t = turns[-1]
                    say(f"turn {t['turn']}: step {t['step_s']:.1f} s, computing alone {t['compute_alone_s']:.1f} s, "
                        f"its bytes alone {t['transfer_alone_s']:.1f} s, ratio {t['step_over_the_larger']:.3f}")
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        sys.exit(process.returncode)
    result = turns[-1] | {"turns": turns[:-1]}
    ratio, peak = result["step_over_the_larger"]["median"], result["peak_host_bytes"]
    if not small:  # steps of a second say little
        result["ratio_as_wanted"] = ratio <= MOST_RATIO
    result["memory_as_wanted"] = peak <= MOST_MEMORY * result["host_budget_bytes"]
    say(f"step over the larger of the two {ratio:.3f} (at most {MOST_RATIO}), peak {gib(peak)} of a budget of {budget}")
    return result


def two_steps(scratch, shape, tokens, budget):
    say(f"{shape}, 1 x {tokens} tokens, host budget {budget}: two steps from disk")
    subprocess.run([PROGRAM, "train", write_deck(scratch, shape, tokens, budget)], check=True, stdout=subprocess.DEVNULL)
    summary = json.loads((scratch / "run/summary.json").read_text())
    shutil.rmtree(scratch / "run")
    kept = ("steps", "seconds_per_step", "tokens_per_second", "peak_host_bytes", "stored_parameter_bytes", "bytes_read",
            "bytes_written", "lanes", "theta_digest", "trajectory_digest", "arithmetic", "git_hash", "machine")
    result = {"tokens": tokens, "host_budget": budget} | {key: summary[key] for key in kept}
    result["memory_as_wanted"] = summary["peak_host_bytes"] <= MOST_MEMORY * bytes_of(budget)
    say(f"{summary['steps']} steps of {summary['seconds_per_step']:.1f} s, peak {gib(summary['peak_host_bytes'])}")
    return result


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is removed all the same
    parser = argparse.ArgumentParser(prog="measure_streaming", description=__doc__)
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build/measure_streaming")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/streaming.json")
    args = parser.parse_args()
    args.scratch = args.scratch.resolve()
    made = not args.scratch.exists()
    args.scratch.mkdir(parents=True, exist_ok=True)
    scratch = args.scratch / f"measure-{os.getpid()}"
    scratch.mkdir()
    large, larger, budget = ("opt-125m", "opt-350m", "240 MiB") if args.small else ("opt-6.7b", "opt-13b", "4 GiB")
    free, needed = shutil.disk_usage(scratch).free, 2e9 if args.small else 32e9
    try:
        if free < needed:
            sys.exit(f"{scratch}: {needed / 1e9:.0f} GB are needed, {free / 1e9:.0f} are free; name a folder by --scratch")
        load = os.getloadavg()
        compute_bound = bench(scratch, large, 256 if args.small else 2048, budget, 2, args.small)
        disk_bound = bench(scratch, large, 16 if args.small else 64, budget, 5, args.small)
        steps = two_steps(scratch, larger, 64, budget)
    finally:
        shutil.rmtree(scratch)
        if made:
            args.scratch.rmdir()
    result = {"load_average_at_start": load, "compute_bound": compute_bound, "disk_bound": disk_bound,
              "larger_than_memory": steps, "seconds": time.monotonic() - START}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(result, indent=2) + "\n")
    say(f"written to {args.output}")
    missed = [f"{name}: {key.split('_')[0]}" for name, case in result.items() if isinstance(case, dict)
              for key in ("ratio_as_wanted", "memory_as_wanted") if not case.get(key, True)]
    if missed:
        sys.exit("not as wanted: " + ", ".join(missed))


if __name__ == "__main__":
    main()
