# SPDX-License-Identifier: BSD-3-Clause
"""Writes one safetensors file tensor by tensor, with numpy alone."""

import json
import os
import struct

import numpy as np

ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


def to_bf16(values):
    """The upper halves of float32 values, rounded to the nearest, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet_nan = (bits >> 16) | 0x40
    return np.where(np.isnan(values), quiet_nan, rounded).astype("<u2")


def encode(values, dtype):
    """Little-endian bytes of a float array in F32, F16 or BF16."""
    if dtype == "BF16":
        return to_bf16(values).tobytes()
    return np.ascontiguousarray(values).astype({"F32": "<f4", "F16": "<f2"}[dtype]).tobytes()


class SafetensorsWriter:
    """Declare every tensor first: `tensors` is a list of (name, dtype, shape). Then `write` each in that order."""

    def __init__(self, path, tensors):
        header = {"__metadata__": {"format": "pt"}}
        self._order = []
        end = 0
        for name, dtype, shape in tensors:
            if name in header:
                raise ValueError(f"{path}: tensor {name} is declared twice")
            size = ITEM_BYTES[dtype]
            for extent in shape:
                size *= int(extent)
            header[name] = {"dtype": dtype, "shape": [int(e) for e in shape], "data_offsets": [end, end + size]}
            end += size
            self._order.append((name, size))
        text = json.dumps(header, separators=(",", ":")).encode("utf-8")
        text += b" " * (-len(text) % 8)
        self._path = path
        self._file = open(path, "wb")
        self._file.write(struct.pack("<Q", len(text)) + text)

    def write(self, name, data):
        expected, size = self._order.pop(0)
        if name != expected or len(data) != size:
            raise ValueError(f"{self._path}: {name} of {len(data)} bytes where {expected} of {size} was declared")
        self._file.write(data)

    def close(self):
        if self._order:
            raise ValueError(f"{self._path}: {len(self._order)} declared tensors were not written")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
