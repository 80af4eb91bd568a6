# SPDX-License-Identifier: BSD-3-Clause
"""What scripts that measure say and keep."""

import statistics
import time

START = time.monotonic()


def say(text):
    """A line of progress, with the seconds since the script began."""
    print(f"[{time.monotonic() - START:5.0f} s] {text}", flush=True)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}
