# SPDX-License-Identifier: BSD-3-Clause
"""Loss and accuracy curves of one or several runs, from their metrics.jsonl and summary.json."""
import argparse
import json
import pathlib
import statistics
import sys

import figures
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator, PercentFormatter

BLUE, ORANGE, GREY = "#1f5a94", "#c8562b", "#6b6b6b"
COLORS = [BLUE, ORANGE, "#3a8f5c", "#8a5aa8", "#b8901f", "#2f9da6", "#a83a5f", "#555555"]  # of runs drawn apart


class BadRun(Exception):
    pass


def read_run(folder):
    """{"loss": {step: value}, "score": {step: value}, "metric": name, "ends": (initial, final) or None, "best": the step
    that best/ holds or None, "start": (value, set) of the base model or None, "steps": those done, "deck": see read_deck}"""
    path = folder / "metrics.jsonl" if folder.is_dir() else folder
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadRun(f"{path}: {error.strerror or error}; expected a run folder with a metrics.jsonl") from error
    run = {"name": path.parent.name or str(path.parent), "loss": {}, "score": {}, "metric": None, "ends": None, "best": None,
           "start": None, "deck": read_deck(path.parent / "deck.yaml")}
    order = {}  # how good a step is on the dev set: score, then loss
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            step = int(entry["step"])
            if "evaluation" in entry:
                name = entry["evaluation"].get("set", "dev")
                metric = next((m for m in ("accuracy", "f1") if m in entry["evaluation"]), None)
                if metric and step == 0 and (run["start"] is None or name != "dev"):
                    run["start"] = (float(entry["evaluation"][metric]), name)
                if metric and name == "dev":  # the test file's two evaluations are the summary's
                    run["metric"] = metric
                    run["score"][step] = float(entry["evaluation"][metric])
                    loss = entry["evaluation"].get("loss")  # null where it is not finite
                    order[step] = (run["score"][step], -float("inf") if loss is None else -float(loss))
            elif entry.get("loss") is not None:
                run["loss"][step] = float(entry["loss"])
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):  # a run that is being written, or was killed
                break
            raise BadRun(f"{path}, line {number}: expected an object with `step` and `loss` or `evaluation`") from error
    if not run["loss"] and not run["score"]:
        raise BadRun(f"{path}: no step has been recorded yet")
    run["steps"] = max([s + 1 for s in run["loss"]] + list(run["score"]))
    best = max(order, key=lambda step: (order[step], -step), default=0)
    run["best"] = best if best > 0 else None  # the base model is not written
    read_ends(run, path.parent / "summary.json")
    return run


def read_deck(path):
    """{"section/key": text} of a resolved deck, whose form is the program's own; None where there is none."""
    if not path.is_file():
        return None
    keys, section = {}, ""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition(":")
        if line.startswith("  "):
            keys[f"{section}/{key.strip()}"] = value.strip().strip('"')
        else:
            section = key
    return keys


def differing_keys(runs):
    """The keys that the runs' decks do not agree in, but for those of the output."""
    keys = dict.fromkeys(key for r in runs for key in r["deck"] or {} if not key.startswith("output/"))
    return [key for key in keys if len({(r["deck"] or {}).get(key) for r in runs}) > 1]


def are_repeats(runs):
    """Whether a median of these runs means something: one deck but for the seed, all of them as far."""
    decks = [r["deck"] for r in runs]
    return len(runs) == 1 or (None not in decks and set(differing_keys(runs)) <= {"zo/seed"} and
                              len({(r["steps"], r["ends"] is None) for r in runs}) == 1)


def name_apart(runs):
    """Gives each run the "label" and "color" that it is drawn with."""
    keys = differing_keys(runs) if all(r["deck"] for r in runs) else []
    keys.sort(key=lambda key: not key.startswith("zo/"))  # the rest in the decks' order
    for i, r in enumerate(runs):
        values = [f"{key.split('/')[1]} {pathlib.PurePath(r['deck'].get(key, 'none')).name}" for key in keys]
        while len(", ".join(values)) > 40 and len(values) > 1:  # a legend is as wide as its axis
            values = values[:-1]
        text = ", ".join(values) + (", ..." if len(values) < len(keys) else "")
        r["label"] = f"{r['name']}: {text}" if text else r["name"]
        r["color"] = COLORS[i % len(COLORS)]


def read_ends(run, path):
    """The evaluations before and after training and whether best/ is there, as the summary of a finished run says."""
    if not path.is_file():
        return
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        if "best" in summary and not (summary["best"] and summary["best"]["in_folder_best"]):
            run["best"] = None  # as with `write models: never`
        run["steps"] = int(summary["steps"])
        if summary["initial"] is None and summary["final"] is None:  # there was nothing to evaluate on
            return
        metric = next(m for m in ("accuracy", "f1") if m in summary["initial"])
        run["ends"] = tuple(float(summary[when][metric]) for when in ("initial", "final"))
        run["metric"] = run["metric"] or metric
        run["ends_examples"] = summary["final"].get("examples")
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise BadRun(f"{path}: expected `steps`, `initial` and `final` with `accuracy` or `f1`") from error


def smooth(series, window):
    """Trailing mean over the last `window` recorded steps."""
    steps, values = list(series), list(series.values())
    sums = [0.0]
    for v in values:
        sums.append(sums[-1] + v)
    return {s: (sums[i + 1] - sums[max(0, i + 1 - window)]) / min(i + 1, window) for i, s in enumerate(steps)}


def spread(curves):
    """Steps that all curves have: (steps, lowest, median, highest)."""
    steps = sorted(set.intersection(*(set(c) for c in curves)))
    rows = [[c[s] for c in curves] for s in steps]
    return steps, [min(r) for r in rows], [statistics.median(r) for r in rows], [max(r) for r in rows]


def draw_band(axis, curves, color, label, **line):
    """The median of several curves over their range; a single curve alone."""
    steps, low, middle, high = spread(curves)
    if len(curves) > 1:
        axis.fill_between(steps, low, high, color=color, alpha=0.18, linewidth=0, label="range of the runs")
        label = f"median of {len(curves)} runs" + label
    axis.plot(steps, middle, color=color, linewidth=1.8, label=label.strip(" ,") or None, **line)
    return steps, middle


def legend_below(axis, columns):
    if axis.get_legend_handles_labels()[0]:
        return axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=columns, frameon=False, fontsize=8)


def draw_loss(axis, runs, window, apart):
    raw = [r["loss"] for r in runs if r["loss"]]
    if not raw:
        return
    for series, color in zip(raw, [r["color"] if apart else BLUE for r in runs if r["loss"]]):
        axis.plot(list(series), list(series.values()), color=color, alpha=0.25 / len(raw) ** 0.5, linewidth=0.5,
                  label="each step" if series is raw[0] else None, rasterized=True)
    if apart:
        for r in runs:
            if r["loss"]:
                draw_band(axis, [smooth(r["loss"], window)], r["color"], r["label"])
    else:
        draw_band(axis, [smooth(s, window) for s in raw], BLUE, f", mean of the last {window} steps")
    values = sorted(v for s in raw for v in s.values())
    first = max(v for s in raw for v in list(s.values())[:20])  # a late spike may leave the axis, the beginning not
    axis.set_ylim(0, max(first, values[int(0.998 * (len(values) - 1))]) * 1.05)
    axis.set_ylabel("training loss (nats per loss term)")
    if apart:
        axis.set_ylabel(f"training loss, mean of the last {window} steps")
    legend = legend_below(axis, 1 if apart else 2)
    legend.get_lines()[0].set(alpha=0.5, linewidth=1.0)


def mark(axis, step, value, text, side, above=False):
    axis.plot([step], [value], marker="o", markersize=6, color=ORANGE, markeredgecolor="white", zorder=5, clip_on=False)
    axis.annotate(text, (step, value), textcoords="offset points",
                  xytext=(8 if side == "left" else 4, 9 if above else -16 if side == "left" else -24),
                  ha=side, fontsize=9, color=ORANGE)


def mark_best(axis, runs):
    """A diamond at the step that each run's best/ holds."""
    best = [(r["best"], r["score"][r["best"]]) for r in runs if r["best"]]
    if best:
        label = f"best/: step {best[0][0]}" if len(runs) == 1 else "best/ of each run"
        axis.plot(*zip(*best), marker="D", linestyle="", markersize=7, markerfacecolor="none", markeredgecolor=ORANGE,
                  markeredgewidth=1.3, zorder=4, label=label)


def draw_apart(axis, runs):
    """A line a run with its own end, where they are no repeats of each other."""
    for r in runs:
        value = r["ends"][1] if r["ends"] else r["score"][max(r["score"])] if r["score"] else None
        if value is None:
            continue
        on = f" on {r['ends_examples']:,} examples" if r.get("ends_examples") else ""
        end = f"final {100 * value:.1f} %{on}" if r["ends"] else f"step {max(r['score'])}, not finished: {100 * value:.1f} % (dev set)"
        axis.plot(list(r["score"]), list(r["score"].values()), color=r["color"], linewidth=1.8, marker="o", markersize=3.5,
                  label=f"{r['label']}:\n{end}")
        axis.plot([r["steps"] if r["ends"] else max(r["score"])], [value], marker="o" if r["ends"] else "s", markersize=6,
                  color=r["color"], markeredgecolor="white", zorder=5, clip_on=False)


def draw_together(axis, runs):
    """The median of repeats over their range, or one run."""
    curves = [r["score"] for r in runs if r["score"]]
    if curves:
        steps, middle = draw_band(axis, curves, BLUE, ", dev set", marker="o", markersize=3.5)
        mark_best(axis, runs)
    ends = [r["ends"] for r in runs if r["ends"]]
    if ends:
        last = max(r["steps"] for r in runs if r["ends"])
        first, final = (statistics.median(e[i] for e in ends) for i in (0, 1))
        examples = {r["ends_examples"] for r in runs if r["ends"]}
        on = f" on {examples.pop():,} examples" if len(examples) == 1 and None not in examples else ""
        axis.plot([], [], marker="o", linestyle="", color=ORANGE, label=f"start and end{on}")
        first_text, last_text = f"zero-shot {100 * first:.1f} %", f"final {100 * final:.1f} %"
    elif curves:
        starts = [r["start"] for r in runs if r["start"]]
        first, name = (statistics.median(s[0] for s in starts), starts[0][1]) if starts else (middle[0], "dev")
        final, last = middle[-1], steps[-1]
        first_text = f"{'zero-shot' if starts else 'first'} {100 * first:.1f} % ({name} set)"
        last_text = f"step {last}, not finished: {100 * final:.1f} % (dev set)"
    if ends or curves:
        axis.axhline(first, color=GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        mark(axis, 0 if ends or starts else steps[0], first, first_text, "left")
        if ends or last > 0:
            mark(axis, last, final, last_text, "right", above=bool(curves) and final >= middle[-1])


def draw_score(axis, runs, metric, apart):
    (draw_apart if apart else draw_together)(axis, runs)
    curves, ends = [r["score"] for r in runs if r["score"]], [r["ends"] for r in runs if r["ends"]]
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_ylabel({"accuracy": "accuracy", "f1": "F1"}[metric] + " (%)")
    low = min([v for c in curves for v in c.values()] + [e[0] for e in ends], default=0.0)
    axis.set_ylim(max(0.0, min(0.45, low - 0.07)), 1.0)
    legend_below(axis, 1 if apart else 2)


def draw(runs, output, window, title):
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8})
    metrics = {r["metric"] for r in runs if r["metric"]}
    if len(metrics) > 1:
        raise BadRun("the runs were scored by different metrics (accuracy, f1): draw them apart")
    apart = not are_repeats(runs)
    if apart:
        name_apart(runs)
    figure, axes = plt.subplots(1, 1 + len(metrics), figsize=(5.2 * (1 + len(metrics)), 4.3 + (0.3 * len(runs) if apart else 0)), squeeze=False)
    draw_loss(axes[0][0], runs, window, apart)
    if metrics:
        draw_score(axes[0][1], runs, metrics.pop(), apart)
    for axis in axes[0]:
        axis.set_xlabel("step")
        axis.set_xlim(left=0)
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axis.grid(axis="y", color="#e4e4e4", linewidth=0.7)
        axis.set_axisbelow(True)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figures.save(figure, output)


def main():
    parser = argparse.ArgumentParser(prog="plot_run", description="Draws loss and accuracy of one or several runs (several that differ in the seed alone: median and range).")
    parser.add_argument("runs", nargs="+", type=pathlib.Path, metavar="RUN", help="run folder")
    parser.add_argument("-o", "--output", type=pathlib.Path, help=f"{figures.OUTPUT_HELP} (default: curves.png in the first run's folder)")
    parser.add_argument("--window", type=int, default=None, help="steps of the trailing mean of the loss (default: a twentieth of the run, 10 to 100)")
    parser.add_argument("--title", help="a heading (default: the runs' names)")
    args = parser.parse_args()
    if args.window is not None and args.window < 1:
        parser.error("--window must be at least 1")
    try:
        runs = [read_run(folder) for folder in args.runs]
        longest = max(len(r["loss"]) for r in runs)
        output = args.output or args.runs[0] / "curves.png"
        draw(runs, output, args.window or min(100, max(10, longest // 200 * 10)),
             ", ".join(r["name"] for r in runs) if args.title is None else args.title)
    except (BadRun, figures.BadFigure) as error:
        print(f"plot_run: {error}", file=sys.stderr)
        return 3
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
