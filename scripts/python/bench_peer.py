# SPDX-License-Identifier: BSD-3-Clause
"""DistZO2 and PyTorch MeZO (pytorch_mezo.py) in turn on the same sentences and threads, and each step against its floor;
writes JSON, a figure and a table of what is reached."""

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import random
import resource
import select
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import measuring
import peer_cases as cases
from measuring import START, say

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/distzo2"


def spread(values):
    return measuring.spread(values) | {"pairs": list(values)}


def busy_seconds():
    """Core seconds that all processes of the machine have taken, those that its host gave to others, and ours."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = [int(n) / os.sysconf("SC_CLK_TCK") for n in file.readline().split()[1:9]]
    own = sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    return user + nice + system + irq + softirq, steal, own


class Peer:
    """A process of PyTorch that answers commands."""

    def __init__(self, run, *words):
        self.log = run.scratch / f"peer-{time.monotonic_ns()}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [sys.executable, ROOT / "scripts/python/pytorch_mezo.py", *words, "--threads", str(run.args.threads)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=run.environment)
        run.peers.append(self)
        self.hello = self.answer(None)

    def answer(self, limit):
        if not select.select([self.process.stdout], [], [], limit)[0]:
            return None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("bench_peer: PyTorch ended:\n" + "\n".join(self.log.read_text().splitlines()[-8:]))
        return json.loads(line)

    def ask(self, command, limit=None, **words):
        """The answer; None where it takes longer than limit seconds, and the process is then gone."""
        print(json.dumps([command, words]), file=self.process.stdin, flush=True)
        answer = self.answer(limit)
        if answer is None:
            self.close()
        return answer

    def close(self):
        self.process.kill()
        self.process.wait()


class Run:
    """The arguments, and what all cases share."""

    def __init__(self, args, scratch):
        self.args, self.scratch, self.peers, self.machine, self.hashes = args, scratch, [], None, set()
        self.environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
        self.models = dict(cases.MODELS)
        if args.small:
            self.models |= dict.fromkeys(("opt-125m", "opt-1.3b"), dataclasses.replace(self.models["opt-125m"], tokens=64))
        self.server = Peer(self)  # without a model: rates, and models of other depths

    def pairs(self):
        """Numbers of pairs; the first of a case is begun at any time."""
        for pair in range(self.args.pairs):
            if pair > 0 and time.monotonic() - START > 60 * self.args.minutes:
                say(f"{self.args.minutes:g} minutes are over: {pair} of {self.args.pairs} pairs were taken")
                return
            yield pair

    def distzo2(self, *words, threads=None):
        environment = self.environment | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
        ran = subprocess.run([PROGRAM, *words], env=environment, cwd=self.scratch, stdout=subprocess.PIPE, text=True, check=False)
        if ran.returncode:
            sys.exit(f"bench_peer: distzo2 {shlex.join(map(str, words))} failed; its message stands above")
        return ran.stdout

    def deck(self, model, ours, **words):
        if model.parameters == cases.SMOLLM2:
            model = dataclasses.replace(model, parameters=cases.SMOLLM2.replace("models/", f"{ROOT}/models/"))
        path = self.scratch / "deck.yaml"
        path.write_text(cases.deck_of(model, ours, **words))
        return path

    def step(self, model, ours, **words):
        """What `bench step` says of a step."""
        repeats = 3 if model.tokens is None and not self.args.small else 1
        result = json.loads(self.distzo2("bench", "step", self.deck(model, ours, **words), "--json", "--noise-pairs", "0",
                                         "--repeats", str(repeats)))
        result["evaluations"] = 2 * ours.directions if ours.difference == "central" else ours.directions + 1
        self.machine = result["machine"]
        self.hashes.add(result["git_hash"])  # someone may build while this runs
        return result

    def sentences(self, pair):
        """A file of the pair's 16 sentences of SST-2's training file."""
        with open(os.path.join(os.environ["SST2"], "train.tsv"), encoding="utf-8") as file:
            header, *rows = file.readlines()
        path = self.scratch / f"pair-{pair}.tsv"
        path.write_text("".join([header, *random.Random(pair).sample(rows, 16)]))
        return path

    def close(self):
        for peer in self.peers:
            peer.close()


def in_turn(ours, peers, pair):
    """Ours and theirs by turns; every other pair in the other order."""
    order = [item for both in itertools.zip_longest(ours, peers) for item in both if item is not None]
    return order[::-1] if pair % 2 else order


def measure_model(run, name, wanted):
    """All that the cases of a model need: [a pair's {what: measurement}], [a pair's rates] and the PyTorch processes."""
    model = run.models[name]
    ours = list(dict.fromkeys(c.ours for c in wanted))
    peers = list(dict.fromkeys(p for c in wanted for p in (*c.against, *c.also)))
    processes = {key: Peer(run, "--model", str(ROOT / model.peer) if model.tokens is None else model.peer, "--precision", key[0],
                           "--form", key[1]) for key in dict.fromkeys((p.precision, p.form) for p in peers)}
    pairs, rates, cut = [], [], set()
    for pair in run.pairs():
        tsv = run.sentences(pair) if model.tokens is None else None
        rates.append(run.server.ask("rates"))
        measured = {}
        for item in in_turn(ours, peers, pair):
            if isinstance(item, cases.Ours):
                measured[item] = run.step(model, item, tsv=tsv)
                say(f"{name}, pair {pair + 1}: {measured[item]['step_s']:.3f} s ours {item}")
                continue
            key = (item.precision, item.form)
            answer = None
            if key not in cut:
                batch = {"sentences": str(tsv)} if tsv else {"tokens": [model.sequences, model.tokens]}
                answer = processes[key].ask("step", run.args.limit, kind=item.kind, **batch)
            if answer is None:
                cut.add(key)
                answer = {"seconds": run.args.limit, "cut": True}
            measured[item] = answer
            say(f"{name}, pair {pair + 1}: {answer['seconds']:.3f} s {item}" + (", cut there" if "cut" in answer else ""))
        counts = {m.get("tokens", m.get("tokens_per_step")) for m in measured.values() if "cut" not in m}
        if len(counts) != 1:
            sys.exit(f"bench_peer: {name}: ours and PyTorch's have other numbers of tokens: {counts}")
        pairs.append(measured)
    parameters = processes[next(iter(processes))].hello["parameters"]
    for process in processes.values():
        process.close()
    return {"pairs": pairs, "rates": rates, "parameters": parameters}


def peaks(model_runs, pair):
    """GF/s of one pair: the best that either library reached in fp32 and, where that is more, in bf16."""
    found = {"fp32": [model_runs["rates"][pair]["gemm_gflops"]["fp32"]], "bf16": [model_runs["rates"][pair]["gemm_gflops"]["bf16"]]}
    for item, m in model_runs["pairs"][pair].items():
        if isinstance(item, cases.Ours):
            found[item.compute].append(m["gemm_alone_gflops"])
    fp32 = max(found["fp32"])
    return {"fp32": fp32, "bf16": max(fp32, *found["bf16"])}


def step_case(run, number, model_runs, amx):
    """Times faster than PyTorch's, and over the floor, of the pairs."""
    case = cases.CASES[number]
    model = run.models[case.model]
    pairs = model_runs["pairs"]
    seconds = {p: [m[p]["seconds"] for m in pairs] for p in (*case.against, *case.also)}
    fastest = min(case.against, key=lambda p: statistics.median(seconds[p]))
    ours = [m[case.ours]["step_s"] for m in pairs]
    floors = []
    for pair, measured in enumerate(pairs):
        result = measured[case.ours]
        length = result["tokens_per_step"] / model.sequences
        floors.append(cases.floor_of(model, result, length, model_runs["parameters"] * (2 if case.ours.storage == "bf16" else 4),
                                     peaks(model_runs, pair)[case.ours.compute] * 1e9, model_runs["rates"][pair]["memory_bytes"]))
    floor = [sum(f.values()) for f in floors]
    ratio = spread([theirs / mine for theirs, mine in zip(seconds[fastest], ours)])
    over = spread([mine / least for mine, least in zip(ours, floor)])
    # On another machine than that of the aims: as near to what a step at its floor would be.
    aim = case.aim if amx else case.aim / case.possible * statistics.median(t / f for t, f in zip(seconds[fastest], floor))
    parts = {key: statistics.median(m[case.ours][key] for m in pairs)
             for key in ("z_s", "update_and_packing_s", "gemm_s", "writes_and_softmax_s", "attention_s", "norm_s", "rest_s")}
    result = {
        "title": case.title, "ours": dataclasses.asdict(case.ours), "step_s": spread(ours), "against": str(fastest),
        "pytorch_s": {str(p): spread(s) | {"cut": any("cut" in m[p] for m in pairs)} for p, s in seconds.items()},
        "pytorch_peak_bytes": {str(p): max(m[p]["peak_bytes"] for m in pairs if "cut" not in m[p])
                               for p in seconds if any("cut" not in m[p] for m in pairs)},
        "ratios": {str(p): spread([t / mine for t, mine in zip(s, ours)]) for p, s in seconds.items()},
        "tokens": [m[case.ours]["tokens_per_step"] for m in pairs], "parts_s": parts,
        "floor_s": spread(floor), "floor_parts_s": {key: statistics.median(f[key] for f in floors) for key in floors[0]},
        "step_over_floor": over, "normals_per_s": spread([2 * model_runs["parameters"] / m[case.ours]["z_s"] for m in pairs]),
        "gemm_gflops": spread([m[case.ours]["gemm_gflops"] for m in pairs]),
        "gemm_alone_gflops": spread([m[case.ours]["gemm_alone_gflops"] for m in pairs])}
    bound = "at least, " if result["pytorch_s"][str(fastest)]["cut"] else ""
    return result, [
        {"case": number, "what": f"{bound}times faster than {fastest}", "measured": ratio, "aim_with_amx": case.aim, "aim": aim,
         "reached": ratio["median"] >= aim},
        {"case": number, "what": "step over its floor", "measured": over, "aim": model.over_floor,
         "reached": over["median"] <= model.over_floor}]


def evaluation(run):
    model, path = run.models["smollm2"], os.path.join(os.environ["SST2"], "validation.tsv")
    examples = 64 if run.args.small else 872
    with open(path, encoding="utf-8") as file:
        rows = file.readlines()[:examples + 1]
    tsv = run.scratch / "validation.tsv"
    tsv.write_text("".join(rows))
    peer = Peer(run, "--model", str(ROOT / model.peer), "--form", "best")
    ours, theirs = [], []
    deck = run.deck(model, cases.Ours(), tsv=run.sentences(0))
    for pair in run.pairs():
        for turn in in_turn([0], [1], pair):
            if turn:
                theirs.append(peer.ask("evaluate", path=str(tsv), batch=32, examples=examples))
            else:
                ours.append(json.loads(run.distzo2("evaluate", deck, "--json", "--set", f"data/test={tsv}")))
        say(f"evaluation, pair {pair + 1}: {ours[-1]['seconds']:.2f} s ours, {theirs[-1]['seconds']:.2f} s PyTorch's")
    peer.close()
    ratio = spread([t["seconds"] / o["seconds"] for o, t in zip(ours, theirs)])
    result = {"examples": examples, "ours_s": spread([o["seconds"] for o in ours]),
              "pytorch_s": spread([t["seconds"] for t in theirs]),
              "accuracy": ours[0]["accuracy"], "pytorch_accuracy": theirs[0]["accuracy"]}
    return result, [{"case": 8, "what": "times faster than transformers, batches of 32", "measured": ratio, "aim": 3,
                     "reached": ratio["median"] >= 3}]


def normals(run):
    rates, file = [], run.scratch / "machine.json"
    for _ in run.pairs():
        run.distzo2("bench", "machine", "--output", file, "--scratch", run.scratch, threads=1)
        rates.append(json.loads(file.read_text())["z_gnormals_per_s"]["value"] * 1e9)
        file.unlink()
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        aim = 1e9 if " avx512f" in info.read() else 5e8
    measured = spread(rates)
    return {"normals_per_s_and_core": measured}, [
        {"case": 9, "what": "normals a second and core", "measured": measured, "aim": aim, "reached": measured["median"] >= aim}]


def memory(run):
    """Of a run of two steps, which is what a user starts."""
    deck = run.deck(run.models["smollm2"], cases.Ours(), tsv=run.sentences(0))
    run.distzo2("train", deck, "--set", "zo/steps=2", "--set", f"output/folder={run.scratch}/memory")
    summary = json.loads((run.scratch / "memory/summary.json").read_text())
    most = 1.10 * summary["stored_parameter_bytes"] + summary["activation_bytes"] + 80e6
    result = {key: summary[key] for key in ("peak_host_bytes", "stored_parameter_bytes", "activation_bytes")}
    measured = spread([summary["peak_host_bytes"] / most])
    return result, [{"case": 10, "what": "peak memory over the most that is wanted", "measured": measured, "aim": 1,
                     "reached": measured["median"] <= 1}]


def growth(run):
    """Equal tokens in longer sequences; twice the layers."""
    lengths = (64, 512) if run.args.small else (512, 4096)
    smollm2 = run.models["smollm2"]
    shape = dataclasses.replace(smollm2, parameters="{shape: smollm2-135m, weights: random, seed: 1}", tokens=1)
    depths = []
    for layers in (15, 30):
        folder = run.scratch / f"layers-{layers}"
        run.server.ask("write_model", folder=str(folder), layers=layers)
        depths.append((dataclasses.replace(shape, layers=layers, parameters=f'{{folder: "{folder}"}}'), 1, lengths[0]))
    turns = {"sequence length": [(shape, lengths[1] // n, n) for n in lengths], "layers": depths}
    result, rows = {}, []
    for name, (small, large) in turns.items():
        ratios = []
        for pair in run.pairs():
            taken = []
            for model, sequences, tokens in (small, large):
                m = run.step(model, cases.Ours(), tokens=tokens, sequences=sequences)
                taken.append((m["step_s"], cases.flop_of(model, m, tokens)))
            (a, flop_a), (b, flop_b) = taken
            ratios.append({"time": b / a, "flop": flop_b / flop_a})
            say(f"growth with {name}: time {b / a:.3f}, operations {flop_b / flop_a:.3f}")
        measured = spread([r["time"] / r["flop"] for r in ratios])
        result[name] = {key: spread([r[key] for r in ratios]) for key in ("time", "flop")}
        rows.append({"case": 11, "what": f"growth of time over that of operations, {name}", "measured": measured, "aim": 1.1,
                     "reached": 0.9 <= measured["median"] <= 1.1})
    return result, rows


def directions(run):
    model, result, rows = run.models["smollm2"], {}, []
    taken = {"one": [], **{name: [] for name in cases.DIRECTIONS}}
    for pair in run.pairs():
        tsv = run.sentences(pair)
        for name, ours in (("one", cases.Ours()), *((n, o) for n, (o, _) in cases.DIRECTIONS.items())):
            taken[name].append(run.step(model, ours, tsv=tsv)["step_s"])
        say("directions: " + ", ".join(f"{name} {times[-1]:.2f} s" for name, times in taken.items()))
    for name, (_, most) in cases.DIRECTIONS.items():
        measured = spread([many / one for many, one in zip(taken[name], taken["one"])])
        result[name] = measured
        rows.append({"case": 12, "what": f"four directions over one, {name}", "measured": measured, "aim": most,
                     "reached": measured["median"] <= most})
    return result, rows


def roofline(models):
    """Medians over all pairs of what either side reached on this machine."""
    rates = [r for m in models.values() for r in m["rates"]]
    alone = {}
    for m in models.values():
        for item, result in ((i, r) for pair in m["pairs"] for i, r in pair.items() if isinstance(i, cases.Ours)):
            alone.setdefault(item.compute, []).append(result["gemm_alone_gflops"])
    return {
        "gemm_gflops_of_the_steps_shapes": {compute: spread(values) for compute, values in alone.items()},
        "gemm_gflops_of_pytorch": {name: spread([r["gemm_gflops"][name] for r in rates]) for name in rates[0]["gemm_gflops"]},
        "memory_read_and_written_bytes_per_s": spread([r["memory_bytes"] for r in rates]),
        "normals_per_s_of_pytorch": {name: spread([r["normals"][name] for r in rates]) for name in rates[0]["normals"]},
        "rademacher_per_s_of_pytorch": spread([r["rademacher"] for r in rates])}


def table(rows):
    for row in rows:
        m = row["measured"]
        form = (lambda x: f"{x:.3g}") if m["median"] >= 1000 else (lambda x: f"{x:.2f}")
        other = row.get("aim_with_amx", row["aim"])
        aim = form(row["aim"]) + (f" ({other:g} with AMX)" if other != row["aim"] else "")
        print(f"{row['case']:>3}  {row['what']:<62} {form(m['median']):>8} ({form(m['min'])} to {form(m['max'])}), wanted {aim}: "
              f"{'reached' if row['reached'] else 'not reached'}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="bench_peer", description=__doc__)
    parser.add_argument("--cases", default=f"1-{max(cases.OTHER_CASES)}")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "results/peer.json")
    args = parser.parse_args()
    args.pairs = args.pairs or (1 if args.small else 5)
    try:
        numbers = cases.read_cases(args.cases)
    except ValueError as error:
        parser.error(str(error))
    if set(numbers) & {1, 2, 3, 4, 8, 10, 12} and not (ROOT / "models/smollm2-135m-instruct").is_dir():
        sys.exit("bench_peer: models/smollm2-135m-instruct is missing; scripts/get_smollm2 makes it")
    if set(numbers) & {1, 2, 3, 4, 8, 10, 12} and not os.path.isfile(os.path.join(os.environ.get("SST2", ""), "train.tsv")):
        sys.exit("bench_peer: set SST2 to the folder of SST-2: train.tsv and validation.tsv")
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        amx = " amx_tile" in info.read()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started and written is removed all the same
    load, busy, begun = os.getloadavg(), busy_seconds(), time.monotonic()
    results, rows, models = {}, [], {}
    with tempfile.TemporaryDirectory() as scratch:
        run = Run(args, pathlib.Path(scratch))
        versions = run.server.hello
        try:
            for name in cases.MODELS:
                wanted = [n for n in numbers if n in cases.CASES and cases.CASES[n].model == name]
                if wanted:
                    models[name] = measure_model(run, name, [cases.CASES[n] for n in wanted])
                for n in wanted:
                    results[n], more = step_case(run, n, models[name], amx)
                    rows += more
            for n in (n for n in numbers if n in cases.OTHER_CASES):
                results[n], more = globals()[cases.OTHER_CASES[n]](run)
                rows += more
        finally:
            run.close()
    seconds = time.monotonic() - begun
    all_cores, stolen, own = (after - before for after, before in zip(busy_seconds(), busy))
    result = {
        "what": "DistZO2 against PyTorch MeZO on the same sentences and threads, in turn; medians and ranges over pairs",
        "made_by": f"scripts/bench_peer --cases {args.cases} --pairs {args.pairs} --threads {args.threads} --limit {args.limit:g}",
        "small": args.small, "threads": args.threads, "pairs": args.pairs,
        "load_average_before": load, "load_average_after": os.getloadavg(), "seconds": seconds,
        "busy_cores_of_other_processes": (all_cores - own) / seconds, "stolen_cores": stolen / seconds,
        "pytorch": versions["pytorch"], "transformers": versions["transformers"], "amx": amx,
        "git_hash": ", ".join(sorted(run.hashes)), "machine": run.machine,
        "roofline": roofline(models) if models else None, "cases": results, "rows": rows}
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(json.dumps(result, indent=2) + "\n")
    table(rows)
    print(args.output)
    if models:
        import plot_peer  # pylint: disable=import-outside-toplevel
        plot_peer.draw(result, args.output.with_suffix(".png"))
        print(args.output.with_suffix(".png"))


if __name__ == "__main__":
    main()
