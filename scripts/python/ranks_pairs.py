# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks against two independent runs and against two threads, in turn; JSON of medians and ranges."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from measuring import spread

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/distzo2"
DECK = """model: {{shape: opt-125m, weights: random, seed: 1}}
data: {{task: random tokens, sequence length: {tokens}, train examples: 8}}
zo: {{steps: {steps}, batch: {batch}, epsilon: 1e-3, learning rate: 1e-7}}
precision: {{storage: fp32, compute: fp32}}
"""
MPIRUN = ["mpirun", "-n", "2", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


def environment(threads):
    return dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")


def start(deck, folder, threads, launcher=(), sets=()):
    words = [*launcher, PROGRAM, "train", deck, "--set", f"output/folder={folder}"]
    for value in sets:
        words += ["--set", value]
    return subprocess.Popen(words, env=environment(threads), stdout=subprocess.DEVNULL)


def seconds_of(folder):
    """Median of a run's steps but the first, and its summary."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return statistics.median([line["seconds"] for line in lines if "g" in line][1:]), json.loads((folder / "summary.json").read_text())


def finish(processes):
    if any([p.wait() for p in processes]):
        raise SystemExit("results_ranks: a run failed; its message stands above")


def one_repeat(deck, scratch, pertp):
    """Seconds a step: of two runs at the same time, of two ranks and of two threads; digests; the exchange's share."""
    folders = [scratch / name for name in ("first", "second", "ranks", "threads")]
    finish([start(deck, folder, 1) for folder in folders[:2]])
    finish([start(deck, folders[2], 1, MPIRUN, [f"parallel/pertp={pertp}"])])
    finish([start(deck, folders[3], 2)])
    (first, alone), (second, _), (ranks, of_ranks), (threads, of_threads) = map(seconds_of, folders)
    if len({s["theta_digest"] for s in (alone, of_ranks, of_threads)}) != 1:
        raise SystemExit("results_ranks: theta differs between one rank and two")
    exchange = of_ranks["exchange"]
    return {"independent_s": (first + second) / 2, "ranks_s": ranks, "threads_s": threads,
            "exchange_share": exchange["share_of_step"]}, of_ranks


def duplicated_z(deck):
    """Seconds a step in which a rank of two makes normals that one rank of two threads would not: both evaluations of a
    rank alone come from one z, and so does its half of the other rank's; the updates are divided. A quarter of the z of
    a rank alone."""
    ran = subprocess.run([PROGRAM, "bench", "step", deck, "--repeats", "1", "--json"], env=environment(1), check=True,
                         stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout)["z_s"] / 4


def measure(name, batch, pertp, args, scratch):
    deck = scratch / f"{name}.yaml"
    deck.write_text(DECK.format(tokens=args.tokens, steps=args.steps, batch=batch))
    z = duplicated_z(deck)
    rows = []
    for repeat in range(args.repeats):
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            row, summary = one_repeat(deck, pathlib.Path(folder), pertp)
        rows.append(row)
        print(f"{name}, repeat {repeat + 1}: two runs {row['independent_s']:.2f} s a step each, two ranks "
              f"{row['ranks_s']:.2f} s, two threads {row['threads_s']:.2f} s", flush=True)
    return {
        "sequences": batch, "tokens": args.tokens, "pertp": pertp, "ddp": 2 // pertp,
        **{key: spread([row[key] for row in rows]) for key in rows[0]},
        "share_of_independent_speed_up": spread([r["independent_s"] / 2 / r["ranks_s"] for r in rows]),
        "duplicated_z_s": z,
        "ranks_less_duplicated_z_over_threads": spread([(r["ranks_s"] - z) / r["threads_s"] for r in rows]),
        **{key: summary[key] for key in ("theta_digest", "arithmetic", "git_hash", "machine")}}


def main():
    parser = argparse.ArgumentParser(prog="results_ranks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/ranks.json")
    args = parser.parse_args()
    load = os.getloadavg()
    with tempfile.TemporaryDirectory() as scratch:
        result = {name: measure(name, batch, pertp, args, pathlib.Path(scratch))
                  for name, batch, pertp in (("pertp 2", 1, 2), ("ddp 2", 2, 1))}
    for name, r in result.items():
        print(f"{name}: {r['share_of_independent_speed_up']['median']:.3f} of the speed-up of two independent runs (wanted: "
              f"0.93), {r['ranks_less_duplicated_z_over_threads']['median']:.3f} of two threads' time (wanted: 0.9 to 1.1), "
              f"exchange {100 * r['exchange_share']['median']:.2f} % of a step (wanted: under 1)")
    result["load_average_at_start"] = load
    args.output.write_text(json.dumps(result, indent=2) + "\n")
    print(args.output)


if __name__ == "__main__":
    main()
