# SPDX-License-Identifier: BSD-3-Clause
"""Runs or submits a deck on several numbers of ranks and layouts, gathers the summaries, and draws them."""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import scaling_result

ROOT = pathlib.Path(__file__).resolve().parents[2]


class BadStudy(Exception):
    """What is wrong, and what is accepted."""


def numbers(text):
    if not re.match(r"[1-9]\d*(,[1-9]\d*)*$", text):
        raise argparse.ArgumentTypeError('"{}"; accepted: numbers from 1, as 1,2,4'.format(text))
    return sorted({int(n) for n in text.split(",")})


def layouts(text):
    for name in text.split(","):
        if not re.match(r"(pertp|ddp|2d|2d-outer|[1-9]\d*x[1-9]\d*)$", name):
            raise argparse.ArgumentTypeError('"{}"; accepted: pertp, ddp, 2d, 2d-outer, or PxD as 2x4'.format(name))
    return list(dict.fromkeys(text.split(",")))


def sizes(layout, ranks):
    """(pertp, ddp), or None where these ranks have no such layout. 2d: PertP 2, as a step with one direction has two evaluations."""
    if ranks == 1 and "x" not in layout:
        return 1, 1
    if layout == "pertp":
        return ranks, 1
    if layout == "ddp":
        return 1, ranks
    if layout in ("2d", "2d-outer"):
        return (2, ranks // 2) if ranks >= 4 and ranks % 2 == 0 else None
    pertp, ddp = (int(n) for n in layout.split("x"))
    return (pertp, ddp) if pertp * ddp == ranks else None


def deck_batch(args):
    """The deck's zo/batch: --batch, else a --set, else the one that the deck's text names."""
    if args.batch:
        return args.batch
    sets = [s.split("=", 1)[1] for s in args.set if s.startswith("zo/batch=")]
    found = sets[-1:] or re.findall(r"(?m)(?:^\s+|[{,]\s*)batch:\s*(\d+)", args.deck.read_text(encoding="utf-8"))
    if len(found) != 1 or not found[0].isdigit():
        raise BadStudy("{}: zo/batch cannot be read from it; name it by --batch".format(args.deck))
    return int(found[0])


def configurations(args):
    """The matrix: ranks times layouts, one rank once. Weak scaling gives each as many sequences a rank."""
    batch, fewest, found = deck_batch(args), args.ranks[0], []
    for ranks in args.ranks:
        if args.weak and batch * ranks % fewest:
            raise BadStudy("--weak: a batch of {} on {} ranks is {} times {} on {}: no whole number".format(
                batch, fewest, batch, ranks, ranks))
        for layout in args.layouts if ranks > 1 else ["one rank"]:
            split = (1, 1) if ranks == 1 else sizes(layout, ranks)
            if split is None or any(c["ranks"] == ranks and (c["pertp"], c["ddp"], c["order"]) == split + (order(layout),)
                                    for c in found):
                continue
            found.append({"ranks": ranks, "layout": layout, "pertp": split[0], "ddp": split[1], "order": order(layout),
                          "batch": batch * ranks // fewest if args.weak else batch, "refused": None, "runs": []})
    return found


def order(layout):
    return "ddp inner" if layout == "2d-outer" else "pertp inner"


def run_folder(args, c, repeat):
    return args.output / "runs" / "{}_ranks_{}x{}{}_{}".format(
        c["ranks"], c["pertp"], c["ddp"], "_outer" if c["order"] == "ddp inner" else "", repeat)


def sets(args, c):
    """What a run of this configuration sets, in the order that counts."""
    texts = ["output/evaluate every=0", "output/write models=never"] + args.set
    texts += ["zo/steps={}".format(args.steps)] if args.steps else []
    texts += ["zo/batch={}".format(c["batch"]), "parallel/pertp={}".format(c["pertp"]), "parallel/ddp={}".format(c["ddp"]),
              "parallel/order=" + c["order"]]
    return [w for text in texts for w in ("--set", text)]


def local_words(args, c, repeat):
    words = [str(args.program), "train", str(args.deck), "--resume", "auto"] + sets(args, c)
    words += ["--set", "output/folder={}".format(run_folder(args, c, repeat))]
    return words if c["ranks"] == 1 else shlex.split(args.launcher.replace("{ranks}", str(c["ranks"]))) + words


def submit_words(args, c, repeat):
    nodes, rest = divmod(c["ranks"], args.ranks_per_node)
    if rest:
        raise BadStudy("--ranks-per-node {}: {} ranks are no whole number of nodes".format(args.ranks_per_node, c["ranks"]))
    words = [str(ROOT / "scripts/submit"), args.submit, str(args.deck), "--nodes", str(nodes), "--ranks-per-node",
             str(args.ranks_per_node), "--machine", args.machine, "--time", args.time, "--program", str(args.program)]
    return words + ["--run", str(run_folder(args, c, repeat)), "--resume", "auto"] + sets(args, c)


def say(c, repeat, text):
    print("{} ranks, {}, repeat {}: {}".format(c["ranks"], c["layout"], repeat, text), flush=True)


def run_one(args, c, repeat):
    """Runs a configuration once; one that the program refuses (exit code 2) is noted and left out."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(args.threads))
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    folder = run_folder(args, c, repeat)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(str(folder) + ".log", "ab") as log:
        code = subprocess.call(local_words(args, c, repeat), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                               env=environment)
    last = [line for line in open(str(folder) + ".log", encoding="utf-8", errors="replace").read().splitlines() if line]
    reason = next((line for line in last if line.startswith("distzo2: ")), last[-1] if last else "")
    if code == 2 and repeat == 1:
        c["refused"] = reason
        return say(c, repeat, "refused: " + reason)
    if code != 0:
        raise BadStudy("{} ranks, {}: exit code {}: {}; the log is {}.log".format(c["ranks"], c["layout"], code, reason, folder))
    rate = scaling_result.read_run(folder, repeat)["tokens_per_second"]
    return say(c, repeat, "{:.1f} tokens/s".format(rate))


def say_where_cores_are_shared(args, matrix):
    cores, most = len(os.sched_getaffinity(0)), matrix[-1]["ranks"] * args.threads
    if most > cores and not args.submit:
        print("note: {} ranks of {} threads share {} cores here".format(matrix[-1]["ranks"], args.threads, cores), flush=True)


def run_all(args, matrix):
    """All configurations in turn, again for each repeat, so that what drifts on the machine touches them alike."""
    for repeat in range(1, args.repeats + 1):
        for c in matrix:
            if c["refused"] or scaling_result.read_run(run_folder(args, c, repeat), repeat):
                continue
            if not args.submit:
                run_one(args, c, repeat)
            elif subprocess.call(submit_words(args, c, repeat)) != 0:
                raise BadStudy("{} ranks, {}: not submitted".format(c["ranks"], c["layout"]))


def gather(args, matrix):
    for c in matrix:
        found = (scaling_result.read_run(run_folder(args, c, repeat), repeat) for repeat in range(1, args.repeats + 1))
        c["runs"] = [run for run in found if run]
    kept = [c for c in matrix if c["runs"] or c["refused"]]
    with_runs = [c for c in kept if c["runs"]]
    if not with_runs:
        raise BadStudy("{}: no run has a summary.json".format(args.output / "runs"))
    study = {"deck": str(args.deck), "scaling": "weak" if args.weak else "strong", "sets": args.set, "steps": args.steps,
             "threads_a_rank": None if args.submit else args.threads,
             "cores": None if args.submit else len(os.sched_getaffinity(0)), "repeats": args.repeats,
             "load_average": os.getloadavg(),
             "refused": [{k: c[k] for k in ("ranks", "layout", "pertp", "ddp", "refused")} for c in kept if c["refused"]],
             "configurations": with_runs}
    return scaling_result.complete(study)


def draw(result, output):
    try:
        import plot_scaling
    except ImportError as error:
        print('scaling_study: {}; run "scripts/bootstrap --plots", then scripts/scaling_study --draw {}'.format(error, result),
              file=sys.stderr)
        return 3
    return plot_scaling.draw_file(result, output)


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/scaling_study", allow_abbrev=False, description="Runs or submits a deck on several numbers of ranks and "
        "layouts, gathers the summaries into OUTPUT/scaling.json and draws OUTPUT/scaling.png. What is done is not done again.")
    parser.add_argument("deck", metavar="DECK", type=pathlib.Path, nargs="?")
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 4], metavar="1,2,4")
    parser.add_argument("--layouts", type=layouts, default=["pertp", "ddp"], metavar="NAME,...",
                        help="pertp, ddp, 2d (PertP 2), 2d-outer, or PxD as 2x4; those that a number of ranks lacks are left out")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--strong", action="store_true", help="keep the global batch")
    kind.add_argument("--weak", action="store_true", help="let the batch grow with the ranks, from the deck's on the fewest")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, help="instead of the deck's")
    parser.add_argument("--batch", type=int, help="instead of the deck's: the global batch on the fewest ranks")
    parser.add_argument("--threads", type=int, help="of a rank, here (default: the cores divided by the most ranks)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="given to the program (repeatable)")
    parser.add_argument("--launcher", default="mpirun -n {ranks} --oversubscribe --bind-to none", help="default: %(default)s")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/distzo2")
    parser.add_argument("--output", type=pathlib.Path, help="folder (default: runs/scaling-<deck>-<kind>)")
    parser.add_argument("--submit", metavar="SYSTEM", help="submit the runs by scripts/submit; gather them later by --gather")
    parser.add_argument("--machine", default="example_cpu", help="for --submit")
    parser.add_argument("--ranks-per-node", type=int, default=1, help="for --submit")
    parser.add_argument("--time", default="01:00:00", help="for --submit: the limit of each job")
    parser.add_argument("--gather", action="store_true", help="run nothing, take what is there")
    parser.add_argument("--draw", type=pathlib.Path, metavar="FILE", help="only draw a scaling.json, beside it")
    args = parser.parse_args()
    if args.draw:
        return args
    if args.deck is None or args.strong == args.weak:
        parser.error("a DECK and one of --strong (the global batch is kept) and --weak (it grows) are needed")
    if args.repeats < 1 or (args.threads or 1) < 1 or (args.steps or 1) < 1 or (args.batch or 1) < 1 or args.ranks_per_node < 1:
        parser.error("--repeats, --threads, --steps, --batch and --ranks-per-node begin at 1")
    args.threads = args.threads or max(1, len(os.sched_getaffinity(0)) // args.ranks[-1])
    args.output = args.output or pathlib.Path("runs/scaling-{}-{}".format(args.deck.stem, "weak" if args.weak else "strong"))
    return args


def main():
    args = parse_arguments()
    if args.draw:
        return draw(args.draw, args.draw.with_suffix(".png"))
    try:
        if not args.deck.is_file():
            raise BadStudy("{}: no such deck".format(args.deck))
        if not args.gather and not os.access(str(args.program), os.X_OK):
            raise BadStudy("{} is not built; name the program by --program".format(args.program))
        matrix = configurations(args)
        if not args.gather:
            say_where_cores_are_shared(args, matrix)
            run_all(args, matrix)
        if args.submit and not args.gather:
            print("gather the runs, once they are done, by the same command with --gather")
            return 0
        result = args.output / "scaling.json"
        study = gather(args, matrix)
        result.write_text(json.dumps(study, indent=2) + "\n", encoding="utf-8")
        print(result)
    except BadStudy as error:
        print("scaling_study: {}".format(error), file=sys.stderr)
        return 2
    if study["same_bits"] is False:
        print("scaling_study: the runs of one deck did not come to the same trajectory; see trajectory_digest", file=sys.stderr)
    return draw(result, result.with_suffix(".png"))


if __name__ == "__main__":
    sys.exit(main())
