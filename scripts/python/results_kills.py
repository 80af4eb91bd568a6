# SPDX-License-Identifier: BSD-3-Clause
"""Kills small runs before each call that changes a file, and at random moments; each must go on to the same theta."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import power_loss

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECK = """model: {shape: llama-tiny, weights: random, seed: 1}
data: {task: random tokens, sequence length: 16, train examples: 20}
zo: {steps: 6, batch: 4, epsilon: 1e-3, learning rate: 1e-2}
checkpoint: {every steps: 2, keep: 1}
"""
MPIRUN = ["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none"]
LOSSES = ("kept", "dropped", "torn")  # what the kill leaves of what was not made durable


class Case:
    """Runs of one tier on so many ranks, each in the folder `work`."""

    def __init__(self, args, scratch, tier, ranks):
        self.args, self.tier, self.ranks = args, tier, ranks
        self.work, self.journal = scratch / "work", scratch / "journal"
        self.deck = scratch / "deck.yaml"
        self.deck.write_text(DECK)
        self.sets = [f"output/folder={self.work / 'run'}"]
        self.counts = {"tier": tier, "ranks": ranks, "kills": 0, "resumed": 0, "restarted_from_base": 0, "same_digest": 0,
                       "calls_taken_back": 0, "failures": []}

    def words(self, command, more):
        words = [*(MPIRUN if self.ranks == 2 and command == "train" else []), self.args.program, command, self.deck, *more]
        for value in self.sets:
            words += ["--set", value]
        return [str(word) for word in words]

    def start(self, kill_at=None, more=("--resume", "auto")):
        environment = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive", OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
        words = self.words("train", more)
        if kill_at is not None:
            shutil.rmtree(self.journal, ignore_errors=True)
            self.journal.mkdir()
            watched = {"LD_PRELOAD": self.args.library, "DISTZO2_KILL_ROOT": self.work,
                       "DISTZO2_KILL_JOURNAL": self.journal, "DISTZO2_KILL_AT": kill_at}
            at = words.index(str(self.args.program))  # the launcher is left alone
            words[at:at] = ["env", *(f"{key}={value}" for key, value in watched.items())]
        return subprocess.Popen(words, cwd=self.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, start_new_session=True)

    def clear(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()

    def digest(self):
        return json.loads((self.work / "run/summary.json").read_text())["theta_digest"]

    def prepare(self):
        """The run that nobody kills: its digest, and how many calls it makes."""
        self.clear()
        if self.tier == "disk":
            plan = subprocess.run(self.words("plan", ("--json", "--set", "memory/groups=on")), cwd=self.work,
                                  stdout=subprocess.PIPE, check=True)
            plan = json.loads(plan.stdout)
            parameters = sum(plan["tiers"][tier]["bytes"] for tier in ("resident", "host"))
            budget = plan["host"]["bytes"] - parameters * 55 // 100  # of the parameters 45 % in memory
            self.sets += ["memory/groups=on", f"memory/host budget={budget} B", "memory/write back every=1",
                          f"memory/scratch folder={self.work / 'scratch'}"]
        began = time.monotonic()
        run = self.start(kill_at=0)
        out, _ = run.communicate()
        if run.returncode != 0:
            raise SystemExit(f"results_kills: the run that nobody kills fails:\n{out}")
        self.seconds = time.monotonic() - began
        summary = json.loads((self.work / "run/summary.json").read_text())
        self.wanted = summary["theta_digest"]
        self.calls = int.from_bytes((self.journal / "calls").read_bytes(), sys.byteorder)
        self.counts["calls"] = self.calls
        self.built = {key: summary[key] for key in ("arithmetic", "git_hash", "machine")}
        if (summary["bytes_written"] > 0) != (self.tier == "disk"):
            raise SystemExit("results_kills: the run is not on the tier asked for")

    def go_on(self, what):
        self.counts["kills"] += 1
        run = self.start()
        out, _ = run.communicate()
        resumed = "\nresumed  " in "\n" + out or "is finished" in out
        self.counts["resumed" if resumed else "restarted_from_base"] += 1
        digest = self.digest() if run.returncode == 0 and (self.work / "run/summary.json").exists() else None
        if digest == self.wanted:
            self.counts["same_digest"] += 1
        else:
            self.counts["failures"].append({"kill": what, "exit_code": run.returncode, "theta_digest": digest,
                                            "output": out[-600:]})
            print(f"{self.tier}, {self.ranks} ranks, {what}: {out[-600:]}", flush=True)

    def kill_at_calls(self, numbers, loss):
        for k in numbers:
            self.clear()
            run = self.start(kill_at=k)
            run.communicate()
            if run.returncode == 0:
                continue  # this time it made fewer calls
            if loss != "kept":
                chance = random.Random(k) if loss == "torn" else None
                self.counts["calls_taken_back"] += power_loss.take_back(self.work, self.journal, chance)
            self.go_on(f"call {k}, {loss}")

    def kill_at_moments(self, wanted, chance):
        for _ in range(wanted):
            self.clear()
            run = self.start()
            time.sleep(chance.uniform(0, 1.1 * self.seconds))
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            self.go_on("a random moment")


def one_case(args, scratch, tier, ranks):
    case = Case(args, scratch, tier, ranks)
    case.prepare()
    began = time.monotonic()
    numbers = range(1, case.calls + 1)
    if args.small:
        numbers = [1 + i * (case.calls - 1) // 3 for i in range(4)]
    for loss in LOSSES[1:] if args.small else LOSSES:
        case.kill_at_calls(numbers, loss)
        print(f"{tier}, {ranks} ranks, {loss}: {case.counts['same_digest']} of {case.counts['kills']} kills of {case.calls} "
              f"calls went on to the same theta, {time.monotonic() - began:.0f} s", flush=True)
    case.kill_at_moments(2 if args.small else args.moments, random.Random(1))
    return case.counts, case.built


def main():
    parser = argparse.ArgumentParser(prog="results_kills", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a handful of kills on one rank; writes nothing by itself")
    parser.add_argument("--moments", type=int, default=50, help="kills at random moments, on each tier and number of ranks")
    parser.add_argument("--jobs", type=int, default=1, help="tiers and numbers of ranks at the same time")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/distzo2")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "build/release/tests/libdistzo2_test_kills.so")
    parser.add_argument("--output", type=pathlib.Path, help="default: results/kills.json")
    args = parser.parse_args()
    args.program, args.library = args.program.resolve(), args.library.resolve()
    wanted = [(tier, ranks) for ranks in ((1,) if args.small else (1, 2)) for tier in ("memory", "disk")]

    def one(tier_and_ranks):
        with tempfile.TemporaryDirectory(prefix="distzo2-kills-") as scratch:
            return one_case(args, pathlib.Path(scratch).resolve(), *tier_and_ranks)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        cases, built = zip(*pool.map(one, wanted))
    kills, same = (sum(case[key] for case in cases) for key in ("kills", "same_digest"))
    print(f"{same} of {kills} kills went on to the same theta")
    result = {"deck": DECK, "losses": LOSSES, "cases": cases, "kills": kills, "same_digest": same, **built[0]}
    output = args.output or (None if args.small else ROOT / "results/kills.json")
    if output:
        output.write_text(json.dumps(result, indent=2) + "\n")
        print(output)
    return 0 if same == kills else 1


if __name__ == "__main__":
    sys.exit(main())
