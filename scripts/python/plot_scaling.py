# SPDX-License-Identifier: BSD-3-Clause
"""Tokens a second, efficiency and lane shares of a scaling study, from its scaling.json."""
import json
import pathlib
import sys

import figures
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator, PercentFormatter

COLORS = ["#1f5a94", "#c8562b", "#3a8f5c", "#8a5aa8", "#b8901f", "#2f9da6"]
LANES = {"read": "#8a5aa8", "upload": "#1f5a94", "gather": "#2f9da6", "compute": "#c8562b", "download": "#3a8f5c",
         "write": "#b8901f", "exchange": "#555555", "waiting": "#b5b5b5"}
GREY = "#6b6b6b"


def names(c):
    return "1 rank" if c["ranks"] == 1 else f"{c['ranks']} ranks\n{c['pertp']} x {c['ddp']}" + (
        "\nouter" if c["order"] == "ddp inner" else "")


def series(study):
    """{layout: its configurations by ranks, the one with a single rank in each}"""
    ones = [c for c in study["configurations"] if c["ranks"] == 1]
    found = {}
    for c in study["configurations"]:
        if c["ranks"] > 1:
            found.setdefault(c["layout"], list(ones)).append(c)
    return found or {"one rank": ones}


def draw_lines(axis, study, key):
    for i, (layout, line) in enumerate(series(study).items()):
        middle = [c[key]["median"] for c in line]
        low = [c[key]["median"] - c[key]["least"] for c in line]
        high = [c[key]["most"] - c[key]["median"] for c in line]
        shift = 1 + 0.012 * (i - 0.5 * (len(series(study)) - 1))
        axis.errorbar([c["ranks"] * shift for c in line], middle, yerr=[low, high], color=COLORS[i % len(COLORS)], marker="o",
                      markersize=4.5, linewidth=1.6, capsize=3, label=layout)
    ranks = sorted({c["ranks"] for c in study["configurations"]})
    axis.set_xscale("log", base=2)
    axis.set_xticks(ranks, [str(r) for r in ranks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel("ranks")
    return ranks


def draw_rate(axis, study):
    ranks = draw_lines(axis, study, "tokens_per_second")
    first = min(study["configurations"], key=lambda c: c["ranks"])
    axis.plot(ranks, [first["tokens_per_second"]["median"] * r / first["ranks"] for r in ranks], color=GREY, linewidth=0.9,
              linestyle=(0, (4, 3)), zorder=0, label="in proportion to the ranks")
    axis.set_yscale("log", base=2)
    axis.yaxis.set_major_locator(MaxNLocator(6))  # a study may span less than a power of two
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"))
    axis.set_ylabel("tokens/s")
    axis.legend(frameon=False, fontsize=8)


def draw_efficiency(axis, study):
    draw_lines(axis, study, "efficiency")
    axis.axhline(1.0, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    axis.set_ylabel("efficiency (the fewest ranks: 100 %)")
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def draw_lanes(axis, study):
    """A group of bars a configuration. Lanes work at the same time: their shares need not add up to 1."""
    shown = [c for c in study["configurations"] if c["lane_shares"]]
    lanes = [lane for lane in LANES if any(lane in c["lane_shares"] for c in shown)]
    lanes += sorted({lane for c in shown for lane in c["lane_shares"]} - set(lanes))
    width = 0.8 / max(1, len(lanes))
    for i, lane in enumerate(lanes):
        at = [k - 0.4 + width * (i + 0.5) for k in range(len(shown))]
        shares = [c["lane_shares"].get(lane, {"median": 0, "least": 0, "most": 0}) for c in shown]
        middle = [s["median"] for s in shares]
        axis.bar(at, middle, 0.92 * width, color=LANES.get(lane, GREY), label=lane,
                 yerr=[[s["median"] - s["least"] for s in shares], [s["most"] - s["median"] for s in shares]],
                 error_kw={"linewidth": 0.8, "capsize": 2})
    axis.set_xticks(range(len(shown)), [names(c) for c in shown], fontsize=8)
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_ylabel("busy share of a step")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, fontsize=8, ncol=len(lanes), loc="lower center", bbox_to_anchor=(0.5, 1.0),
                columnspacing=1.0, handlelength=1.2)


def heading(study):
    batches = [c["batch"] for c in study["configurations"]]
    if study["scaling"] == "strong":
        return f"Strong scaling: the global batch stays {batches[0]}"
    return f"Weak scaling: the global batch grows with the ranks, {min(batches)} to {max(batches)}"


def subtitle(study):
    most = max(len(c["runs"]) for c in study["configurations"])
    threads, cores = study["threads_a_rank"], study["cores"]
    where = f", {threads} thread{'s' if threads > 1 else ''} a rank on {cores} cores" if threads else ""
    return f"{pathlib.PurePath(study['deck']).name}{where}, " + (f"median and range of {most} runs" if most > 1 else "one run each")


def draw(study, output, title):
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8})
    with_lanes = any(c["lane_shares"] for c in study["configurations"])
    parts = [draw_rate, draw_efficiency] + ([draw_lanes] if with_lanes else [])
    widths = [1.0, 1.0] + ([max(1.0, 0.28 * len(study["configurations"]))] if with_lanes else [])
    figure, axes = plt.subplots(1, len(parts), figsize=(4.2 * sum(widths), 4.4), gridspec_kw={"width_ratios": widths})
    for part, axis in zip(parts, axes):
        part(axis, study)
        axis.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        axis.set_axisbelow(True)
    figure.suptitle(f"{heading(study)}\n{title}", fontsize=10)
    figure.tight_layout()
    figures.save(figure, output)


def draw_file(path, output):
    try:
        study = json.loads(path.read_text(encoding="utf-8"))
        draw(study, output, subtitle(study))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"scaling_study: {path}: {error!r}; expected the scaling.json of a study", file=sys.stderr)
        return 3
    except figures.BadFigure as error:
        print(f"scaling_study: {error}", file=sys.stderr)
        return 3
    print(output)
    return 0
