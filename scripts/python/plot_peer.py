# SPDX-License-Identifier: BSD-3-Clause
"""Seconds a step of DistZO2, of PyTorch MeZO and of the floor, and how many times faster, from what bench_peer measured."""
import figures
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

OURS, PYTORCH, BEST, GREY = "#1f5a94", "#c8562b", "#b8901f", "#6b6b6b"


def bar(axis, at, spread, color, label, width):
    low, high = spread["median"] - spread["min"], spread["max"] - spread["median"]
    axis.barh(at, spread["median"], width, color=color, label=label, xerr=[[low], [high]],
              error_kw={"linewidth": 0.9, "capsize": 2.5})


def draw_seconds(axis, shown):
    named = set()

    def once(label):
        fresh = label not in named
        named.add(label)
        return label if fresh else None

    for at, case in enumerate(shown):
        bars = [(case["step_s"], OURS, "DistZO2")]
        for name, spread in case["pytorch_s"].items():
            published = "as published" in name
            bars.append((spread, PYTORCH if published else BEST, "PyTorch, as published" if published else "PyTorch, best form"))
        width = 0.8 / len(bars)
        for i, (spread, color, label) in enumerate(bars):
            bar(axis, at - 0.4 + width * (i + 0.5), spread, color, once(label), 0.92 * width)
        floor = case["floor_s"]["median"]
        axis.plot([floor, floor], [at - 0.42, at - 0.4 + width], color="black", linewidth=1.6, label=once("floor of a step"))
        for i, name in enumerate(case["pytorch_s"], 1):
            axis.annotate(name.split(",")[0].split()[1] + (", cut" if case["pytorch_s"][name]["cut"] else ""),
                          (case["pytorch_s"][name]["max"], at - 0.4 + width * (i + 0.5)), xytext=(4, 0),
                          textcoords="offset points", va="center", fontsize=7, color=GREY)
    axis.set_xscale("log")
    axis.set_xlim(left=0.6 * min(case["floor_s"]["min"] for case in shown))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda s, _: f"{s:g}"))
    axis.set_xlabel("seconds a step")
    axis.legend(frameon=False, fontsize=8, ncol=2, loc="lower left", bbox_to_anchor=(0, 1))


def draw_ratios(axis, result, numbers):
    for at, number in enumerate(numbers):
        row = next(r for r in result["rows"] if r["case"] == int(number) and "aim_with_amx" in r)
        m = row["measured"]
        axis.errorbar(m["median"], at, xerr=[[m["median"] - m["min"]], [m["max"] - m["median"]]], color=OURS, marker="o",
                      markersize=5, capsize=3)
        axis.plot(row["aim"], at, marker="|", markersize=14, markeredgewidth=2, color=GREY,
                  label=None if at else "wanted" + ("" if result["amx"] else " on this machine"))
        axis.annotate(f"{m['median']:.1f}", (m["median"], at), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8)
    axis.set_xlim(left=0)
    axis.set_xlabel("times faster than PyTorch's")
    axis.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1))


def draw(result, output):
    numbers = [n for n in result["cases"] if "floor_s" in result["cases"][n]]
    shown = [result["cases"][n] for n in numbers]
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8})
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 1.9 + 0.75 * len(shown)), sharey=True, gridspec_kw={"width_ratios": [1.6, 1]})
    draw_seconds(axes[0], shown)
    draw_ratios(axes[1], result, numbers)
    axes[0].set_yticks(range(len(shown)), [f"{n}: {case['title']}" for n, case in zip(numbers, shown)])
    axes[0].invert_yaxis()
    for axis in axes:
        axis.grid(axis="x", color="#e4e4e4", linewidth=0.7)
        axis.set_axisbelow(True)
    machine, pairs = result["machine"], min(len(case["tokens"]) for case in shown)
    figure.suptitle(f"{machine['processor']}, {result['threads']} threads, {machine['instruction_set']}; "
                    f"medians and ranges of {pairs} pair{'s' if pairs > 1 else ''};\nother processes took {result['busy_cores_of_other_processes']:.1f} cores; {result['git_hash']}", fontsize=9)
    figure.tight_layout()
    figures.save(figure, output)
