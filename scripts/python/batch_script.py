# SPDX-License-Identifier: BSD-3-Clause
"""The text of a batch job, from a batch system, a machine and what is to be run. Python 3.6, no packages."""
import shlex

import batch_data

BODY = """# What the run has recorded, in bytes: a job that stopped without a new step is not queued again, or it would be for ever.
recorded() {{ stat -c %s {run}/trajectory.zoj 2>/dev/null || echo 0; }}
before=$(recorded)
{command}
code=$?
if ((code == 75)); then
  if (($(recorded) > before)); then
    {queue_again}
  else
    echo "distzo2: stopped without a new step, so the job is not queued again; give it more --time or less --margin" >&2
    code=1
  fi
fi
exit $code
"""


def clock(seconds):
    return "{:02d}:{:02d}:{:02d}".format(seconds // 3600, seconds // 60 % 60, seconds % 60)


def job_values(job, machine):
    """What {names} in the batch system's lines stand for; None: not given."""
    ranks = job["nodes"] * job["ranks per node"]
    return {"job": job["name"], "nodes": job["nodes"], "ranks": ranks, "ranks per node": job["ranks per node"],
            "cores": machine["cores"], "all cores": job["nodes"] * machine["cores"],
            "cores per rank": machine["cores"] // job["ranks per node"], "devices": machine["devices"] or None,
            "time": clock(job["seconds"]), "minutes": -(-job["seconds"] // 60), "seconds": job["seconds"],
            "margin": job["margin"], "log": job["log"], "script": job["script"],
            "queue": job["queue"] or machine["queue"], "account": job["account"] or machine["account"]}


def train_words(system, machine, job):
    """The program's own command line; what the user sets comes last, and so counts."""
    sets = ["output/folder=" + job["run"]]
    if system["stop"] == "time limit" or machine["launcher"]:  # a signal may not get past another launcher
        sets.append("checkpoint/time limit={} s".format(job["seconds"] - job["margin"]))
    if machine["filesystem"]["scratch"]:
        sets.append("memory/scratch folder=" + machine["filesystem"]["scratch"])
    words = [job["program"], "train", job["deck"], "--resume", "auto"]
    for text in sets + job["sets"]:
        words += ["--set", text]
    return words


def job_script(system, machine, job):
    """The whole script. Whatever the batch system does with a job that lost a node, the run goes on: it resumes."""
    values = job_values(job, machine)
    lines = ["#!/bin/bash" + (" -l" if machine["modules"] else "")]
    directives = [batch_data.fill(line, values) for line in system["directives"] + machine["directives"].get(system["name"], [])]
    lines += [system["prefix"] + line for line in directives if line is not None]
    lines += ["# {} on {}, machine {}: {} x {} ranks of {} cores. Written by scripts/submit.".format(
        job["name"], system["name"], machine["name"], job["nodes"], job["ranks per node"], values["cores per rank"])]
    lines.append("cd {} || exit 3".format(shlex.quote(job["folder"])))
    if system["log"] == "script":
        lines.append("exec >>{} 2>&1".format(shlex.quote(job["log"])))
    lines += machine["modules"]
    environment = {"OMP_NUM_THREADS": str(values["cores per rank"]), "OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}
    environment.update(machine["environment"])
    lines += ["export {}={}".format(name, shlex.quote(text)) for name, text in sorted(environment.items())]
    launcher = batch_data.fill(machine["launcher"] or system["launcher"], values)
    if launcher is None:
        raise batch_data.BadInput("machine {}: launcher: it needs a value that is not given here".format(machine["name"]))
    command = launcher + " \\\n  " + " ".join(shlex.quote(w) for w in train_words(system, machine, job))
    again = batch_data.fill(system["queue again"] or "true  # exit code 75 itself queues the job again", values)
    return "\n".join(lines) + "\n" + BODY.format(run=shlex.quote(job["run"]), command=command, queue_again=again)
