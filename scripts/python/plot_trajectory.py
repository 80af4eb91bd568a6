# SPDX-License-Identifier: BSD-3-Clause
"""Loss and g of a run, from its trajectory alone."""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

import figures
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

from plot_run import BLUE, GREY, ORANGE, legend_below, smooth

ROOT = pathlib.Path(__file__).resolve().parents[2]


class BadTrajectory(Exception):
    pass


def read_trajectory(path, program):
    """What `distzo2 inspect --json` prints of it."""
    try:
        ran = subprocess.run([program, "inspect", path, "--json"], capture_output=True, text=True)
    except OSError as error:
        raise BadTrajectory(f"{program}: {error.strerror or error}; scripts/quickstart builds it, --program names another") from error
    if ran.returncode != 0:
        raise BadTrajectory(ran.stderr.strip().removeprefix("distzo2: "))
    found = json.loads(ran.stdout)
    if not found.get("steps"):
        raise BadTrajectory(f"{path}: no step has been recorded yet")
    return found


def finite(value):
    """JSON has null for what is not finite."""
    return value is not None and math.isfinite(value)


def mean(values):
    values = [v for v in values if finite(v)]
    return sum(values) / len(values) if values else None


def skipped(step):
    return all(c == 0 for c in step["c"]) and not all(finite(v) for v in step["losses"])


def trailing_median(sizes, window):
    """Of the sizes of the last `window` steps' g, from the tenth step on: {step: median}"""
    steps = list(sizes)
    return {t: statistics.median(v for s in steps[max(0, i + 1 - window):i + 1] for v in sizes[s])
            for i, t in enumerate(steps) if i + 1 >= min(10, len(steps))}


def draw_loss(axis, steps, window):
    loss = {s["t"]: value for s in steps if (value := mean(s["losses"])) is not None}
    if not loss:
        raise BadTrajectory("no step has a finite loss")
    axis.plot(list(loss), list(loss.values()), color=BLUE, alpha=0.25, linewidth=0.5, rasterized=True)
    axis.plot([], [], color=BLUE, alpha=0.5, linewidth=1.0, label="each step")
    trailing = smooth(loss, window)
    axis.plot(list(trailing), list(trailing.values()), color=BLUE, linewidth=1.8, label=f"mean of the last {window} steps")
    lost = [s["t"] for s in steps if skipped(s)]
    if lost:
        axis.plot(lost, [0] * len(lost), marker="|", linestyle="", color=ORANGE, label=f"skipped: {len(lost)}")
    values = sorted(loss.values())
    first = max(list(loss.values())[:20])  # a late spike may leave the axis, the beginning not
    axis.set_ylim(0, max(first, values[int(0.998 * (len(values) - 1))]) * 1.05)
    axis.set_ylabel("training loss (nats per loss term)")
    legend_below(axis, 3)


def draw_g(axis, steps, window, directions):
    dots = [(s["t"], g) for s in steps for g in s["g"] if finite(g)]
    if not dots:
        return
    sizes = {}
    for t, g in dots:
        sizes.setdefault(t, []).append(abs(g))
    typical = trailing_median(sizes, window)
    axis.axhline(0, color=GREY, linewidth=0.8, zorder=0)
    axis.plot(*zip(*dots), marker=".", markersize=4, linestyle="", color=BLUE, alpha=0.4, markeredgewidth=0, rasterized=True)
    axis.plot([], [], marker=".", markersize=6, linestyle="", color=BLUE, alpha=0.7,
              label="each step" if directions == 1 else f"each of {directions} directions")
    for sign in (1, -1):
        axis.plot(list(typical), [sign * v for v in typical.values()], color=ORANGE, linewidth=1.5,
                  label=f"± median of |g|, last {window} steps" if sign == 1 else None)
    sizes = sorted(abs(g) for _, g in dots)
    limit = 1.1 * max(sizes[int(0.99 * (len(sizes) - 1))], max(typical.values()))
    axis.set_ylim(-limit or -1, limit or 1)
    outside = sum(1 for v in sizes if v > limit)
    if outside:
        axis.annotate(f"{outside} beyond the axis", (1, 1), xycoords="axes fraction", xytext=(-4, -10),
                      textcoords="offset points", ha="right", fontsize=8, color=GREY)
    axis.set_ylabel("g, the loss's slope along z")
    legend_below(axis, 2)


def draw(found, output, window, title):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8})
    figure, axes = plt.subplots(1, 2, figsize=(10.4, 4.3))
    draw_loss(axes[0], found["steps"], window)
    draw_g(axes[1], found["steps"], window, found["directions"])
    for axis in axes:
        axis.set_xlabel("step")
        axis.set_xlim(0, max(1, len(found["steps"])))
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        axis.set_axisbelow(True)
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figures.save(figure, output)


def main():
    parser = argparse.ArgumentParser(prog="plot_trajectory", description="Draws loss and g of a run, from its trajectory alone.")
    parser.add_argument("trajectory", type=pathlib.Path, metavar="TRAJECTORY", help="trajectory.zoj, or the run folder that holds it")
    parser.add_argument("-o", "--output", type=pathlib.Path, help=f"{figures.OUTPUT_HELP} (default: trajectory.png beside it)")
    parser.add_argument("--window", type=int, default=None, help="steps of the trailing means (default: a twentieth of the run, 10 to 100)")
    parser.add_argument("--title", help="a heading (default: the file's name, its steps and its size)")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/bin/distzo2", help="default: build/release/bin/distzo2")
    args = parser.parse_args()
    if args.window is not None and args.window < 1:
        parser.error("--window must be at least 1")
    file = args.trajectory / "trajectory.zoj" if args.trajectory.is_dir() else args.trajectory
    try:
        found = read_trajectory(file, args.program)
        steps = len(found["steps"])
        name = file.parent.name if file.name == "trajectory.zoj" and file.parent.name else file.name
        title = f"{name}: {steps:,} step{'' if steps == 1 else 's'} in {found['bytes']:,} bytes" if args.title is None else args.title
        output = args.output or file.parent / "trajectory.png"
        draw(found, output, args.window or min(100, max(10, steps // 200 * 10)), title)
    except (BadTrajectory, figures.BadFigure) as error:
        print(f"plot_trajectory: {error}", file=sys.stderr)
        return 3
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
