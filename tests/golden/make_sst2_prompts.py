#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes sst2_prompts.txt: the number and a digest (FNV-1a, 64 bit) of SmolLM2's token ids for SST-2's validation prompts.

The ids come from transformers; the sentences themselves are not kept. Each line that is hashed: label, prompt ids, "|",
the ids of " terrible", "|", the ids of " great". Run: make_sst2_prompts.py MODEL_FOLDER SST2_FOLDER > sst2_prompts.txt
"""
import pathlib
import sys

from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])


def encode(text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


digest, prompts = 0xCBF29CE484222325, 0
rows = pathlib.Path(sys.argv[2], "validation.tsv").read_text(encoding="utf-8").rstrip("\n").split("\n")[1:]
for row in rows:
    sentence, label = row.split("\t")
    prompt = encode(sentence.strip() + " It was")
    parts = [label, *prompt]
    for word in ("terrible", "great"):
        whole = encode(sentence.strip() + " It was " + word)
        assert whole[: len(prompt)] == prompt
        parts += ["|", *whole[len(prompt) :]]
    for byte in (" ".join(map(str, parts)) + "\n").encode():
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    prompts += 1
print(prompts, f"{digest:016x}")
