# SPDX-License-Identifier: BSD-3-Clause
"""Makes tests/golden/models: tiny random models and the logits that transformers gives for them.

Run with torch, transformers (5.24 was used) and safetensors; nothing of it is needed to run the tests. Each folder is a
Hugging Face folder (config.json, model.safetensors) with a file golden.safetensors beside it:
  ids, positions (tokens), lengths (sequences), rows (terms): whole numbers, kept as fp32
  logits (terms, vocab): fp32, of the tokens `rows` of the sequences laid end to end, each computed alone
"""
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, OPTConfig, OPTForCausalLM, Qwen3Config, Qwen3ForCausalLM

VOCAB = 96
OPT = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=48,
           max_position_embeddings=48, word_embed_proj_dim=32, dropout=0.0, attention_dropout=0.0)
GATED = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             intermediate_size=40, max_position_embeddings=128, attention_dropout=0.0, bos_token_id=1, eos_token_id=2)
SCALED = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
SHORT = [(17, 0), (1, 0), (40, 0)]        # sequences: (length, first position)
LONG = [(300, 0), (20, 0), (24, 6000)]    # far beyond the original 64 positions

MODELS = {
    "opt": (OPTForCausalLM, OPTConfig(**OPT), SHORT),
    "opt_350m": (OPTForCausalLM, OPTConfig(**{**OPT, "word_embed_proj_dim": 16, "do_layer_norm_before": False}), SHORT),
    "opt_plain": (OPTForCausalLM, OPTConfig(**{**OPT, "num_hidden_layers": 1, "enable_bias": False,
                                               "layer_norm_elementwise_affine": False}), SHORT),
    "llama_tied": (LlamaForCausalLM, LlamaConfig(**GATED, tie_word_embeddings=True), SHORT),
    "llama_untied": (LlamaForCausalLM, LlamaConfig(**GATED, tie_word_embeddings=False, attention_bias=True,
                                                   mlp_bias=True), SHORT),
    "llama3_scaled": (LlamaForCausalLM, LlamaConfig(**{**GATED, "max_position_embeddings": 8192, "head_dim": 16}, rope_parameters=SCALED,
                                                    tie_word_embeddings=True), LONG),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**GATED, head_dim=16, rms_norm_eps=1e-6, tie_word_embeddings=True,
                                            rope_parameters=dict(rope_type="default", rope_theta=1e6)), SHORT),
}


def randomise(model, generator):
    """Large enough that attention is not flat and logits spread over several units."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.dim() > 1:
            p.data = noise * (0.5 if "embed" in name else 1.6 / p.shape[1] ** 0.5)
        else:
            p.data = noise * 0.2 + (1.0 if "norm" in name and name.endswith("weight") else 0.0)


def main():
    root = pathlib.Path(__file__).parent / "models"
    for number, (name, (kind, config, sequences)) in enumerate(MODELS.items()):
        generator = torch.Generator().manual_seed(1000 + number)
        config._attn_implementation = "eager"
        model = kind(config).float().eval()
        randomise(model, generator)
        model.tie_weights()
        folder = root / name
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)

        ids, positions, rows, logits = [], [], [], []
        for length, first in sequences:
            sequence = torch.randint(3, VOCAB, (length,), generator=generator)
            place = torch.arange(first, first + length)
            with torch.no_grad():
                out = model(sequence[None], position_ids=place[None]).logits[0]
            wanted = sorted({*range(0, length, max(1, length // 12)), length - 1})
            rows += [len(ids) + r for r in wanted]
            logits += [out[r] for r in wanted]
            ids += sequence.tolist()
            positions += place.tolist()
        floats = lambda values: torch.tensor(values, dtype=torch.float32)
        save_file({"ids": floats(ids), "positions": floats(positions), "rows": floats(rows),
                   "lengths": floats([n for n, _ in sequences]), "logits": torch.stack(logits).float().contiguous()},
                  folder / "golden.safetensors")
        spread = torch.stack(logits)
        print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits {spread.std():.2f} rms, "
              f"{spread.abs().max():.2f} largest")


main()
