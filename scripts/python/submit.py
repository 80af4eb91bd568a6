# SPDX-License-Identifier: BSD-3-Clause
"""Writes a job for a batch system and submits it. Python 3.6 with its standard library is enough."""
import argparse
import os
import pathlib
import re
import subprocess
import sys

import batch_data
import batch_script
from batch_data import BadInput

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAIN = re.compile(r"[A-Za-z0-9_./+=:@-]+$")  # batch systems differ in how they read quoted names in a directive


def parse_time(text):
    match = re.match(r"(\d{1,4}):([0-5]\d):([0-5]\d)$", text)
    if not match:
        raise BadInput("--time {}; accepted: hours, minutes and seconds, as 08:00:00".format(text))
    hours, minutes, seconds = (int(g) for g in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def expand(text, what):
    """A folder of a machine, with its ${VARIABLES} as they are here."""
    def value(match):
        if not os.environ.get(match.group(1)):
            raise BadInput("{}: {}: the variable {} is not set here; accepted: one that is".format(what, text, match.group(1)))
        return os.environ[match.group(1)]

    return os.path.expanduser(re.sub(r"\$\{(\w+)\}", value, text))


def newest_number(runs, deck):
    """Of runs/<deck>-<NNN>, and of the scripts of jobs that have not begun; 0 where there is none."""
    pattern = re.compile(re.escape(deck) + r"-(\d{3,9})(\.sh)?$")
    names = [p.name for p in runs.iterdir()] if runs.is_dir() else []
    return max([int(m.group(1)) for m in (pattern.match(n) for n in names) if m] or [0])


def run_folder(args, machine):
    """Where the run will be: --run, else runs/<deck>-<NNN>, a new one or, with --resume auto, the newest."""
    if args.run:
        run = pathlib.Path(args.run)
    else:
        runs = pathlib.Path(expand(machine["filesystem"]["runs"], "machine {}: filesystem: runs".format(machine["name"])))
        number = newest_number(runs, args.deck.stem)
        if not args.resume or number == 0:
            number += 1
        run = runs / "{}-{:03d}".format(args.deck.stem, number)
    if not args.resume:
        for there in (run, pathlib.Path(str(run) + ".sh")):
            if there.exists():
                raise BadInput("{} is there already; give --resume auto to go on with it, or another folder by --run".format(there))
    if not PLAIN.match(str(run)) or not PLAIN.match(os.getcwd()):
        raise BadInput("{} in {}; accepted for a job: names of letters, digits and _./+=:@-".format(run, os.getcwd()))
    return run


def check_ranks(args, machine):
    """Ranks of a node; as many as it has devices, else one."""
    per_node = args.ranks_per_node or machine["devices"] or 1
    if not 1 <= args.nodes <= machine["nodes"]:
        raise BadInput("--nodes {}; accepted on machine {}: 1 to {}".format(args.nodes, machine["name"], machine["nodes"]))
    if not 1 <= per_node <= machine["cores"]:
        raise BadInput("--ranks-per-node {}; accepted on machine {}: 1 to {}, a core each".format(
            per_node, machine["name"], machine["cores"]))
    if machine["devices"] and per_node > machine["devices"]:
        raise BadInput("--ranks-per-node {}, and a node of machine {} has {} devices: two ranks would share one; accepted: 1 to {}"
                       .format(per_node, machine["name"], machine["devices"], machine["devices"]))
    return per_node


def make_job(args, machine):
    """What is to be run, every value filled in."""
    per_node = check_ranks(args, machine)
    seconds = parse_time(args.time)
    if not 1 <= args.margin < seconds:
        raise BadInput("--margin {} with --time {}; accepted: 1 to {} seconds".format(args.margin, args.time, seconds - 1))
    for text in args.set:
        if "=" not in text or "/" not in text.split("=")[0]:
            raise BadInput('--set "{}"; accepted: section/key=value'.format(text))
        if text.startswith("output/folder="):
            raise BadInput('--set "{}"; a job names its folder by --run'.format(text))
    if not args.deck.is_file():
        raise BadInput("{}: no such deck".format(args.deck))
    program = args.program or ROOT / "build" / ("cuda" if machine["devices"] else "release") / "bin/distzo2"
    if not args.dry_run and not os.access(str(program), os.X_OK):
        raise BadInput("{} is not built; name the program by --program".format(program))
    run = run_folder(args, machine)
    base = os.path.join(os.getcwd(), str(run))
    return {"name": run.name, "nodes": args.nodes, "ranks per node": per_node, "seconds": seconds, "margin": args.margin,
            "run": str(run), "log": base + ".log", "script": base + ".sh", "folder": os.getcwd(), "queue": args.queue,
            "account": args.account, "program": os.path.abspath(str(program)), "deck": str(args.deck), "sets": args.set}


def submit(system, machine, job, text):
    """Writes the script beside the run's folder and gives it to the batch system; its exit code is ours."""
    script = pathlib.Path(job["script"])
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(text, encoding="utf-8")
    words = [batch_data.fill(word, batch_script.job_values(job, machine)) for word in system["submit"]]
    print("run      {}\nscript   {}\nlog      {}".format(job["run"], script, job["log"]), flush=True)
    try:
        if system["script on standard input"]:
            with script.open(encoding="utf-8") as stream:
                code = subprocess.call(words, stdin=stream)
        else:
            code = subprocess.call(words)
    except OSError as error:
        script.unlink()
        raise BadInput("{}: {}; is {} here? --dry-run prints the script".format(words[0], error.strerror, system["name"]))
    if code != 0:
        script.unlink()
    return code


def known(kind):
    reader = {"batch": batch_data.read_system, "machines": batch_data.read_machine}[kind]
    return "\n".join("  {:<14} {} (last run: {})".format(name, entry["what"], entry["last run"])
                     for name, entry in ((n, reader(n)) for n in batch_data.names_in(kind)))


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="scripts/submit", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Writes a job that trains a deck, and submits it. Stopped before its time limit it is queued again and goes on.",
        epilog="batch systems (scripts/batch):\n{}\nmachines (scripts/machines):\n{}".format(known("batch"), known("machines")))
    parser.add_argument("system", metavar="SYSTEM", help="a batch system below, or a JSON file")
    parser.add_argument("deck", metavar="DECK", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, required=True, metavar="N")
    parser.add_argument("--machine", default="example_cpu", metavar="NAME|FILE", help="default: example_cpu")
    parser.add_argument("--ranks-per-node", type=int, metavar="R", help="default: one a device, one on a machine without")
    parser.add_argument("--time", default="01:00:00", metavar="HH:MM:SS", help="the job's limit (default 01:00:00)")
    parser.add_argument("--margin", type=int, default=300, metavar="SECONDS", help="stop so long before the limit (default 300)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="given to the program (repeatable)")
    parser.add_argument("--run", metavar="FOLDER", help="the run's folder (default: the next runs/<deck>-<NNN>)")
    parser.add_argument("--resume", choices=["auto"], help="go on with the run that is in that folder, else with the newest")
    parser.add_argument("--queue", help="queue or partition, instead of the machine's")
    parser.add_argument("--account", help="account or project, instead of the machine's")
    parser.add_argument("--program", metavar="PATH", help="default: build/release/bin/distzo2, build/cuda/bin/distzo2 with devices")
    parser.add_argument("--dry-run", action="store_true", help="print the script and do nothing")
    return parser.parse_args()


def main():
    try:
        args = parse_arguments()
        system, machine = batch_data.read_system(args.system), batch_data.read_machine(args.machine)
        job = make_job(args, machine)
        text = batch_script.job_script(system, machine, job)
        if args.dry_run:
            sys.stdout.write(text)
            return 0
        return submit(system, machine, job, text)
    except BadInput as error:
        print("submit: {}".format(error), file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
