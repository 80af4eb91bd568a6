# SPDX-License-Identifier: BSD-3-Clause
"""What the runs of a scaling study come to: medians with their range, efficiency, lane shares. Python 3.6, no packages."""
import json
import statistics

KEPT = ("tokens_per_second", "seconds_per_step", "theta_digest", "trajectory_digest")


def spread(values):
    values = [v for v in values if v is not None]
    return {"median": statistics.median(values), "least": min(values), "most": max(values)} if values else None


def lane_shares(summary):
    """{lane: share of the time of the run's last half in which it was busy}; with several ranks also the exchange and the
    mean wait for a slower rank before it. Where nothing streams, there is no lane but computing, which has the rest."""
    shares = {}
    exchange = summary.get("exchange")
    if exchange:
        waits = exchange["waiting_seconds_per_step"]
        shares["exchange"] = exchange["share_of_step"]
        shares["waiting"] = sum(waits) / len(waits) / summary["seconds_per_step"]
    lanes = summary.get("lanes")
    if not lanes:
        shares["compute"] = max(0.0, 1.0 - sum(shares.values()))
        return shares
    shares.update((name, lane["busy_s"] / lanes["wall_s"]) for name, lane in lanes.items() if isinstance(lane, dict))
    return shares


def read_run(folder, repeat):
    """One run's figures, or None where it has no summary (yet)."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except OSError:
        return None
    run = {"repeat": repeat}
    run.update({key: summary[key] for key in KEPT})
    run["lane_shares"] = lane_shares(summary)
    run["layout"] = summary["layout"]
    run["source"] = {key: summary[key] for key in ("git_hash", "arithmetic", "machine")}
    return run


def reference(configurations, c):
    """What efficiency is counted from: the fewest ranks, in the same layout or in the only one there."""
    fewest = min(d["ranks"] for d in configurations)
    there = [d for d in configurations if d["ranks"] == fewest]
    same = [d for d in there if d["layout"] == c["layout"]]
    return (same or there)[0]


def efficiencies(configurations, c):
    """Of each repeat that both have: tokens a second of c over those that as many times the reference's ranks would give."""
    base = reference(configurations, c)
    rates = {r["repeat"]: r["tokens_per_second"] for r in base["runs"]}
    return [r["tokens_per_second"] / rates[r["repeat"]] * base["ranks"] / c["ranks"] for r in c["runs"] if r["repeat"] in rates]


def complete(study):
    """Adds medians, ranges and efficiency to a study whose configurations have their runs."""
    configurations = study["configurations"]
    for c in configurations:
        c["tokens_per_second"] = spread([r["tokens_per_second"] for r in c["runs"]])
        c["seconds_per_step"] = spread([r["seconds_per_step"] for r in c["runs"]])
        c["efficiency"] = spread(efficiencies(configurations, c))
        names = sorted({name for r in c["runs"] for name in r["lane_shares"]})
        c["lane_shares"] = {name: spread([r["lane_shares"].get(name, 0.0) for r in c["runs"]]) for name in names}
    runs = [r for c in configurations for r in c["runs"]]
    sources = [r["source"] for r in runs]
    study["sources"] = [s for i, s in enumerate(sources) if s not in sources[:i]]
    digests = {r["trajectory_digest"] for r in runs}
    # Weak scaling changes the batch, and with it the mathematics.
    study["same_bits"] = len(digests) == 1 if study["scaling"] == "strong" and runs else None
    return study
