# SPDX-License-Identifier: BSD-3-Clause
"""Prints the dev accuracies of the runs runs/learning_rate_RATE as JSON."""

import json
import pathlib
import sys

RUNS = pathlib.Path(__file__).resolve().parents[2] / "runs"


def dev_accuracies(rate):
    lines = [json.loads(line) for line in (RUNS / f"learning_rate_{rate}/metrics.jsonl").read_text().splitlines()]
    return {str(line["step"]): line["evaluation"]["accuracy"] for line in lines
            if line["step"] > 0 and line.get("evaluation", {}).get("set") == "dev"}


summary = json.loads((RUNS / f"learning_rate_{sys.argv[1]}/summary.json").read_text())
print(json.dumps({
    "what": "accuracy on the 500 dev examples after so many of 400 steps, seed 1, linear schedule; the deck takes the best",
    "made_by": "scripts/results_learning_rates", "git_hash": summary["git_hash"],
    "runs": [{"learning rate": rate, "dev": dev_accuracies(rate)} for rate in sys.argv[1:]]}, indent=2))
