# SPDX-License-Identifier: BSD-3-Clause
"""Makes tests/golden/tokenizers with the package `tokenizers` (made with 0.23.3; deterministic, no network).

    python tests/golden/make_tokenizer_goldens.py [SMOLLM2_FOLDER]

strings.json: the strings that all are compared on. NAME/: a tokenizer as a model's folder holds it, trained here on
text generated here, and NAME/ids.bin: for each string a count and that many ids, as little-endian 16-bit integers.
NAME/decoded.json: what the ids of string number KEY decode to where that is not the string itself. variants.json:
other normalizers, pre-tokenizers and decoders put into the tokenizer.json of `base`, with ids of every 29th string.
smollm2_ids.bin, with an argument: the ids of SmolLM2's own tokenizer, which is not stored.
"""
import array
import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tokenizer_golden_text import corpus, strings

FOLDER = pathlib.Path(__file__).resolve().parent / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
STRINGS = strings()


def special(content, **flags):
    return AddedToken(content, special=True, normalized=flags.pop("normalized", False), **flags)


def byte_level(pre_tokenizer, normalizer=None, specials=(), size=700):
    """A byte-level tokenizer; `specials` take the first ids."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def edited(tokenizer, edit):
    data = json.loads(tokenizer.to_str())
    edit(data)
    return Tokenizer.from_str(json.dumps(data)), data


def sentencepiece_like(size=500, byte_tokens=256, **settings):
    """Vocabulary in Llama-2's order: <unk>, <s>, </s>, bytes, merged tokens, characters."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.train_from_iterator([line for line in corpus() if len(line) < 60], trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False, max_token_length=10,
        limit_alphabet=140))
    data = json.loads(trained.to_str())
    old = data["model"]["vocab"]
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(byte_tokens)] + sorted(old, key=old.get)[3:]
    model = models.BPE(vocab={name: i for i, name in enumerate(names)},
                       merges=[tuple(m) for m in data["model"]["merges"]], unk_token="<unk>", **settings)
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    return tokenizer


def flat(lists):
    out = array.array("H")
    for ids in lists:
        out.append(len(ids))
        out.extend(ids)
    if sys.byteorder == "big":
        out.byteswap()
    return out.tobytes()


def dump(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def write(name, tokenizer, files):
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        if isinstance(content, str):
            (folder / file).write_text(content, encoding="utf-8")
        else:
            dump(folder / file, content)
    ids = [tokenizer.encode(s, add_special_tokens=False).ids for s in STRINGS]
    (folder / "ids.bin").write_bytes(flat(ids))
    decoded = [tokenizer.decode(i, skip_special_tokens=False) for i in ids]
    dump(folder / "decoded.json", {str(i): d for i, d in enumerate(decoded) if d != STRINGS[i]})


def opt():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), size=600,
                           specials=[special(t, normalized=True) for t in ("<s>", "<pad>", "</s>", "<unk>")])
    model = json.loads(tokenizer.to_str())["model"]
    flags = {"__type": "AddedToken", "lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
    token = {**flags, "content": "</s>"}
    config = {"errors": "replace", "unk_token": token, "bos_token": token, "eos_token": token,
              "pad_token": {**flags, "content": "<pad>"}, "add_prefix_space": False, "add_bos_token": True,
              "special_tokens_map_file": None, "tokenizer_class": "GPT2Tokenizer"}
    plain = {k: v for k, v in token.items() if k != "__type"}
    special_map = {"bos_token": plain, "eos_token": plain, "unk_token": plain,
                   "pad_token": {**plain, "content": "<pad>"}}
    # The files name these two only; <s> and <unk> are ordinary entries that no merge reaches.
    published = Tokenizer(models.BPE(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]]))
    published.pre_tokenizer, published.decoder = tokenizer.pre_tokenizer, tokenizer.decoder
    published.add_special_tokens([special("</s>", normalized=True), special("<pad>", normalized=True)])
    write("opt", published, {
        "vocab.json": model["vocab"], "tokenizer_config.json": config, "special_tokens_map.json": special_map,
        "merges.txt": "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in model["merges"])})


def gpt2():
    def old_form(data):
        del data["model"]["type"]
        data["model"].update(merges=[" ".join(m) for m in data["model"]["merges"]], unk_token="",
                             continuing_subword_prefix="", end_of_word_suffix="")
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), specials=[special("<|endoftext|>")])
    tokenizer.add_tokens([AddedToken("<|left|>", lstrip=True), AddedToken("<|right|>", rstrip=True),
                          AddedToken("<|word|>", single_word=True), AddedToken("<mask>", lstrip=True, rstrip=True),
                          AddedToken("<|endof"), AddedToken("zu", single_word=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer, data = edited(tokenizer, old_form)
    write("gpt2", tokenizer, {"tokenizer.json": data})


def smollm2_like():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer = byte_level(pre, specials=[special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    write("smollm2_like", tokenizer, {
        "tokenizer.json": json.loads(tokenizer.to_str()),
        "tokenizer_config.json": {"bos_token": "<|im_start|>", "tokenizer_class": "GPT2Tokenizer"}})


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def llama3():
    def whole_words(data):  # entries that no merge makes, as in Llama-3's own vocabulary
        vocab = data["model"]["vocab"]
        for w in ("Ġcapital", "ĠFrance", "Ġlike", "aaa", "123", "Ċ" * 4, "ĠĠĠĠĠĠ"):
            vocab.setdefault(w, len(vocab))
        data["model"]["ignore_merges"] = True
        data["added_tokens"] = []
    tokenizer, _ = edited(byte_level(split_then_bytes(LLAMA3)), whole_words)
    tokenizer.add_special_tokens([special("<|begin_of_text|>"), special("<|endoftext|>")])
    bos = tokenizer.token_to_id("<|begin_of_text|>")
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B",
                                             special_tokens=[("<|begin_of_text|>", bos)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    write("llama3", tokenizer, {"tokenizer.json": json.loads(tokenizer.to_str())})


def qwen():
    tokenizer = byte_level(split_then_bytes(QWEN), normalizers.NFC())
    tokenizer.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("O\u0308rdner", normalized=True)])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    write("qwen", tokenizer, {
        "tokenizer.json": json.loads(tokenizer.to_str()),
        "tokenizer_config.json": {"add_bos_token": False, "bos_token": None, "tokenizer_class": "Qwen2Tokenizer"}})


def llama2_template(tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B",
                                                             special_tokens=[("<s>", 1)])


def llama2_normalizer():
    tokenizer = sentencepiece_like(byte_fallback=True, fuse_unk=True)
    tokenizer.add_tokens([AddedToken("<think>", normalized=True), AddedToken("<mask>", normalized=True, lstrip=True)])
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    llama2_template(tokenizer)
    write("llama2_normalizer", tokenizer, {"tokenizer.json": json.loads(tokenizer.to_str())})


def llama2_metaspace():
    tokenizer = sentencepiece_like(byte_fallback=True, fuse_unk=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    llama2_template(tokenizer)
    write("llama2_metaspace", tokenizer, {"tokenizer.json": json.loads(tokenizer.to_str())})


def metaspace_unknown():
    """Few bytes to fall back on, so that the unknown token is used, each on its own."""
    tokenizer = sentencepiece_like(size=350, byte_tokens=200, byte_fallback=True, fuse_unk=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace()
    write("metaspace_unknown", tokenizer, {"tokenizer.json": json.loads(tokenizer.to_str())})


def variants():
    base = sentencepiece_like(size=350, byte_tokens=0, fuse_unk=True)
    data = json.loads(base.to_str())
    (FOLDER / "base").mkdir(parents=True, exist_ok=True)
    dump(FOLDER / "base" / "tokenizer.json", data)
    changes = [{"pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"[aeiou]+|\s"}, "behavior": b, "invert": i}}
               for b in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
               for i in (False, True)]
    changes += [{"pre_tokenizer": {"type": "Split", "pattern": {"String": "."}, "behavior": "Removed", "invert": False}},
                {"pre_tokenizer": {"type": "Digits", "individual_digits": False}},
                {"pre_tokenizer": {"type": "Digits", "individual_digits": True}},
                {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                    {"type": "Split", "pattern": {"Regex": r"x*|[\S&]\d$"}, "behavior": "Isolated", "invert": False},
                    {"type": "Digits", "individual_digits": True}]}},
                {"normalizer": {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": "▁"}},
                {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": "a"}]}}]
    for scheme in ("always", "first", "never"):
        for split in (False, True):
            meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
            changes.append({"pre_tokenizer": meta, "decoder": meta})
    old = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "str_rep": "▁"}
    changes += [{"pre_tokenizer": old, "decoder": old},
                {"decoder": {"type": "Sequence", "decoders": [
                    {"type": "Replace", "pattern": {"Regex": "[ae]"}, "content": "_"},
                    {"type": "Strip", "content": "▁", "start": 2, "stop": 1}, {"type": "Fuse"}]}}]
    out = []
    for change in changes:
        tokenizer = Tokenizer.from_str(json.dumps({**data, **change}))
        ids = [tokenizer.encode(s, add_special_tokens=False).ids for s in STRINGS[::29]]
        out.append({"change": change, "ids": ids, "decoded": [tokenizer.decode(i, skip_special_tokens=False)
                                                             for i in ids] if "decoder" in change else []})
    dump(FOLDER / "variants.json", out)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    dump(FOLDER / "strings.json", STRINGS)
    for make in (opt, gpt2, smollm2_like, llama3, qwen, llama2_normalizer, llama2_metaspace, metaspace_unknown, variants):
        make()
    if len(sys.argv) > 1:
        real = Tokenizer.from_file(str(pathlib.Path(sys.argv[1]) / "tokenizer.json"))
        (FOLDER / "smollm2_ids.bin").write_bytes(
            flat(real.encode(s, add_special_tokens=False).ids for s in STRINGS))
    print(f"{len(STRINGS)} strings, {sum(len(s.encode()) for s in STRINGS)} bytes")
