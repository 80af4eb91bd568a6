# SPDX-License-Identifier: BSD-3-Clause
"""Makes tests/golden/safetensors/mixed.safetensors with the packages torch and safetensors."""

import pathlib

import torch
from safetensors.torch import save_file

folder = pathlib.Path(__file__).parent / "safetensors"
save_file(
    {
        "f32": torch.tensor([[1.0, -2.5, 3.25e30], [1e-45, 0.0, 7.0]], dtype=torch.float32),
        "bf16": torch.tensor([1.0, -3.140625, 2.0**100], dtype=torch.bfloat16),
        "f16": torch.tensor([0.5, -65504.0, 2.0**-24, 1.0 + 2.0**-10], dtype=torch.float16),
        "f64": torch.tensor([0.25, -8.0], dtype=torch.float64),
        "scalar": torch.tensor(42.0, dtype=torch.float32),
        "empty": torch.zeros((0, 4), dtype=torch.float32),
        "ids": torch.tensor([1, 2, 3], dtype=torch.int64),
    },
    folder / "mixed.safetensors",
    metadata={"format": "pt"},
)
