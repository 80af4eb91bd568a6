# SPDX-License-Identifier: BSD-3-Clause
"""Turns pytorch_model*.bin shards into safetensors, one shard in memory at a time. Pickled code is never executed."""

import argparse
import json
import os
import pathlib
import pickle
import shutil
import sys

import torch
from safetensors_writer import SafetensorsWriter

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
COPIED = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
          "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt"]


def refuse(message):
    print(f"convert_checkpoint: {message}", file=sys.stderr)
    sys.exit(3)


def find_shards(folder):
    """The .bin files, as the index names them where there is one."""
    index = folder / "pytorch_model.bin.index.json"
    if index.exists():
        try:
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            refuse(f"{index}: no index of shards: {error!r}")
        for name in names:
            if not isinstance(name, str) or pathlib.PurePath(name).name != name or "\\" in name:
                refuse(f"{index}: shard {name!r} is not the plain name of a file")
    else:
        names = sorted(p.name for p in folder.glob("pytorch_model*.bin"))
    if not names:
        refuse(f"{folder}: no pytorch_model*.bin")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        refuse(f"{folder}: shard {missing[0]} is missing")
    return [folder / name for name in names]


def load_shard(path):
    """{name: tensor}, mapped where the file's format allows it."""
    try:
        try:
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # files older than torch 1.6 cannot be mapped
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        refuse(f"{path}: holds more than tensors, for which code out of the file would have to be run: refused")
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        refuse(f"{path}: cannot be read; it may be cut off ({str(error).strip().splitlines()[0] if str(error) else error!r})")
    if not isinstance(state, dict) or not all(isinstance(k, str) and torch.is_tensor(v) for k, v in state.items()):
        refuse(f"{path}: not a table of named tensors")
    return state


def keep_weights(state):
    """Without buffers that are no floats (masks, position ids) and without a head that is the embedding itself."""
    kept = {}
    for name, tensor in state.items():
        if tensor.dtype not in DTYPES:
            print(f"  {name} ({tensor.dtype}) is no weight: left out")
        elif name == "lm_head.weight" and any(other is not tensor and other.data_ptr() == tensor.data_ptr() and
                                              other.shape == tensor.shape for other in state.values()):
            print(f"  {name} is tied to the embedding: left out")
        else:
            kept[name] = tensor
    return kept


def convert_shard(source, target):
    """Writes `target`; returns its tensors' names and bytes."""
    state = keep_weights(load_shard(source))
    writer = SafetensorsWriter(target, [(name, DTYPES[t.dtype], tuple(t.shape)) for name, t in state.items()])
    total = 0
    for name, tensor in state.items():
        data = memoryview(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())
        writer.write(name, data)
        total += len(data)
    writer.close()
    return list(state), total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        refuse(f"{arguments.folder}: no such folder")
    shards = find_shards(arguments.folder)
    output = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    for name in ["model.safetensors", "model.safetensors.index.json"]:
        if (output / name).exists():
            refuse(f"{output / name}: exists already")

    names = (["model.safetensors"] if len(shards) == 1 else
             [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))])
    weight_map, total = {}, 0
    for i, (source, name) in enumerate(zip(shards, names)):
        print(f"{source.name} -> {name} ({i + 1} of {len(shards)})", flush=True)
        partial = output / (name + ".partial")
        try:
            tensors, size = convert_shard(source, partial)
            os.rename(partial, output / name)
        finally:
            partial.unlink(missing_ok=True)
        total += size
        for tensor in tensors:
            if weight_map.setdefault(tensor, name) != name:
                refuse(f"{source}: tensor {tensor} is in another shard too")
    if output.resolve() != arguments.folder.resolve():
        for name in COPIED:
            if (arguments.folder / name).exists():
                shutil.copyfile(arguments.folder / name, output / name)
    if len(shards) > 1:  # last: without it a half-done folder is not taken for a whole one
        partial = output / "model.safetensors.index.json.partial"
        partial.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2) + "\n",
                           encoding="utf-8")
        os.rename(partial, output / "model.safetensors.index.json")
    print(f"wrote {len(weight_map)} tensors, {total} bytes, into {output}")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        refuse(str(error))
