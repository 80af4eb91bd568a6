# SPDX-License-Identifier: BSD-3-Clause
"""The timeline of the pipeline's lanes, from the trace file of a run."""
import argparse
import json
import pathlib
import sys

import figures
import matplotlib.pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

LANES = ("read", "upload", "gather", "compute", "download", "write")
GREY = "#6b6b6b"


class BadTrace(Exception):
    pass


def read_events(path):
    """The trace's events; a trace that was cut off while it was written lacks the end of its array."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadTrace(f"{path}: {error.strerror or error}; expected the file that output/trace file names") from error
    try:
        return json.loads(text)
    except ValueError:
        pass
    end = text.rfind("},\n")
    for whole in (text, text[:end + 1] if end >= 0 else ""):
        try:
            return json.loads(whole.rstrip(" \n,") + "\n]")
        except ValueError:
            continue
    raise BadTrace(f"{path}: expected a JSON array of trace events, as output/trace file holds")


def read_spans(path):
    """[{"lane", "unit", "step", "bytes", "begin", "end"}], seconds since the trace began."""
    events = read_events(path)
    try:
        names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        spans = [{"lane": names[e["tid"]], "unit": int(e["args"]["unit"]), "step": int(e["args"]["step"]),
                  "bytes": int(e["args"]["bytes"]), "begin": e["ts"] / 1e6, "end": (e["ts"] + e["dur"]) / 1e6}
                 for e in events if e["ph"] == "X"]
    except (KeyError, TypeError, ValueError) as error:
        raise BadTrace(f"{path}: expected events with tid, ts, dur and args unit, step, bytes") from error
    if not spans:
        raise BadTrace(f"{path}: no lane has done anything yet")
    return spans


def choose(spans, steps, path):
    """The spans of steps A to B; without a choice at most the last three whole steps."""
    found = sorted({s["step"] for s in spans})
    if steps is None:
        whole = found[:-1] or found
        first, last = whole[-3:][0], whole[-1]
    else:
        first, last = steps
    chosen = [s for s in spans if first <= s["step"] <= last]
    if not chosen:
        raise BadTrace(f"{path}: it holds steps {found[0]} to {found[-1]}, none of {first}:{last}")
    return chosen


def amount(count, unit):
    for prefix in ("", "k", "M", "G"):
        if count < 1000:
            break
        count /= 1000
    else:
        prefix = "T"
    return f"{count:.3g} {prefix}{unit}"


def label(lane, spans, wall):
    """What stands beside a row: the lane, its busy share, its bytes a second of busy time."""
    busy = sum(s["end"] - s["begin"] for s in spans)
    text = f"{lane}\n{100 * busy / wall:.0f} % busy"
    moved = sum(s["bytes"] for s in spans)
    return text + (f", {amount(moved / busy, 'B/s')}" if moved and busy else "")


def scale(wall):
    return (1e3, "ms") if wall < 1 else (1.0, "s")


def draw(spans, output, title):
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8})
    lanes = [lane for lane in LANES if any(s["lane"] == lane for s in spans)]
    lanes += sorted({s["lane"] for s in spans} - set(lanes))
    begin, end = min(s["begin"] for s in spans), max(s["end"] for s in spans)
    wall = max(end - begin, 1e-9)
    factor, unit = scale(wall)
    colour = ScalarMappable(Normalize(0, max(1, max(s["unit"] for s in spans))), "viridis")
    figure, axis = plt.subplots(figsize=(11, 1.1 + 0.55 * len(lanes)))
    labels = []
    for row, lane in enumerate(lanes):
        own = [s for s in spans if s["lane"] == lane]
        labels.append(label(lane, own, wall))
        axis.broken_barh([((s["begin"] - begin) * factor, (s["end"] - s["begin"]) * factor) for s in own],
                         (row - 0.38, 0.76), linewidth=0.3, edgecolor="white",
                         facecolors=[GREY if s["unit"] < 0 else colour.to_rgba(s["unit"]) for s in own])
    mark_steps(axis, spans, begin, factor, len(lanes))
    axis.set_yticks(range(len(lanes)), labels)
    axis.set_ylim(len(lanes) - 0.5, -0.5)
    axis.set_xlim(0, wall * factor)
    axis.set_xlabel(f"time ({unit})")
    axis.tick_params(axis="y", length=0)
    if any(s["unit"] >= 0 for s in spans):
        bar = figure.colorbar(colour, ax=axis, pad=0.015, fraction=0.03)
        bar.set_label("unit (grey: none)" if any(s["unit"] < 0 for s in spans) else "unit")
        bar.ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        bar.outline.set_visible(False)
    if title:
        axis.set_title(title, fontsize=10, loc="left", pad=16)
    figure.tight_layout()
    figures.save(figure, output)


def mark_steps(axis, spans, begin, factor, rows):
    """A dashed line where the computation of each step begins."""
    for step in sorted({s["step"] for s in spans}):
        own = [s for s in spans if s["step"] == step]
        at = min(s["begin"] for s in ([s for s in own if s["lane"] == "compute"] or own))
        axis.axvline((at - begin) * factor, color="black", linewidth=0.8, linestyle=(0, (4, 3)), zorder=3)
        axis.annotate(f"step {step}", ((at - begin) * factor, -0.5), textcoords="offset points", xytext=(2, 3), fontsize=8)


def steps_range(text):
    first, colon, last = text.partition(":")
    if not (first.isdigit() and (last.isdigit() if colon else True)) or (colon and int(last) < int(first)):
        raise argparse.ArgumentTypeError(f"\"{text}\" is no range of steps; expected A:B with A at most B, or one step")
    return int(first), int(last if colon else first)


def main():
    parser = argparse.ArgumentParser(prog="plot_timeline", description="Draws what each lane of the pipeline did and when, coloured by unit.")
    parser.add_argument("trace", type=pathlib.Path, metavar="TRACE", help="the file that output/trace file named")
    parser.add_argument("-o", "--output", type=pathlib.Path, help=f"{figures.OUTPUT_HELP} (default: the trace's name with .png)")
    parser.add_argument("--steps", type=steps_range, metavar="A:B", help="steps to draw, both included (default: the last three whole ones)")
    parser.add_argument("--title", help="a heading (default: the trace's name and the steps)")
    args = parser.parse_args()
    try:
        output = args.output or args.trace.with_suffix(".png")
        spans = choose(read_spans(args.trace), args.steps, args.trace)
        steps = [s["step"] for s in spans]
        draw(spans, output, f"{args.trace.name}, steps {min(steps)} to {max(steps)}" if args.title is None else args.title)
    except (BadTrace, figures.BadFigure) as error:
        print(f"plot_timeline: {error}", file=sys.stderr)
        return 3
    print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
