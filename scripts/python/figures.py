# SPDX-License-Identifier: BSD-3-Clause
"""What the scripts that draw share: figures as PNG, PDF or SVG, by the output's name."""
import matplotlib

matplotlib.use("Agg")

FORMATS = (".png", ".pdf", ".svg")
OUTPUT_HELP = "file to write, a .png, .pdf or .svg"


class BadFigure(Exception):
    pass


def save(figure, output):
    """Writes the figure; equal figures give equal files."""
    if output.suffix.lower() not in FORMATS:
        raise BadFigure(f"{output}: expected a name that ends in {', '.join(FORMATS[:-1])} or {FORMATS[-1]} (-o)")
    matplotlib.rcParams["svg.hashsalt"] = "distzo2"
    dates = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
    try:
        figure.savefig(output, dpi=160, metadata=dates.get(output.suffix.lower()))
    except OSError as error:
        raise BadFigure(f"{output}: {error.strerror or error}; name a file that can be written with -o") from error
