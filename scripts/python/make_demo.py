# SPDX-License-Identifier: BSD-3-Clause
"""Makes inputs/demo: a small language model and a sentiment task of short reviews.

The reviews come from demo_grammar.py. The model, LLaMA-shaped, is trained on them as a plain language model (next token,
AdamW); it never sees a label. The pre-training text leaves a review's polarity readable at the end of "<review> It was",
but says ` great` and ` terrible` only of things that have nothing to do with the review, so that the prompt
"{sentence} It was {great|terrible}" is answered by guessing until it is fine-tuned. Everything follows from SEED.
"""
import argparse
import json
import pathlib
import random
import time

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from demo_grammar import Review, pretraining_text, simple_pretraining_text

SEED = 20250711
TEMPLATE = "{} It was"
WORDS = [" terrible", " great"]
SIZES = {"train": 2000, "dev": 500, "test": 1200}
SIMPLE_STEPS, STEPS, BATCH = 600, 1800, 64
RATE = 2e-3
REMARK_WEIGHT = 3.0
VOCABULARY = 1024
END = "<|endoftext|>"


def make_reviews(rng):
    """Balanced, shuffled splits of distinct sentences."""
    seen, splits = set(), {}
    for name, size in SIZES.items():
        rows = []
        while len(rows) < size:
            polarity = len(rows) % 2
            text = Review(rng, polarity).text()
            if text not in seen:
                seen.add(text)
                rows.append((text, polarity))
        rng.shuffle(rows)
        splits[name] = rows
    return splits


def make_pretraining_texts(rng, make, count, held_out):
    """Texts none of which begins with a labelled review."""
    texts = []
    while len(texts) < count:
        text = make(rng)
        ends = [i + 1 for i, c in enumerate(text) if c == "."]
        if not any(text[:end] in held_out for end in ends):
            texts.append(text)
    return texts


def make_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    return tokenizer


def make_model(tokenizer):
    torch.manual_seed(SEED)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=24, intermediate_size=256, max_position_embeddings=256, rms_norm_eps=1e-5,
        tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, attention_bias=False, mlp_bias=False,
        initializer_range=0.08))


def batches_of(rng, ids):
    """Shuffled batches of texts of about one length."""
    order = sorted(range(len(ids)), key=lambda i: (len(ids[i]), rng.random()))
    groups = [[ids[i] for i in order[b:b + BATCH]] for b in range(0, len(order), BATCH)]
    rng.shuffle(groups)
    return groups


def language_model_loss(model, group, remark):
    """Mean cross-entropy of the next token; the one after "It was" weighs REMARK_WEIGHT."""
    width = max(map(len, group))
    tokens = torch.tensor([x + [0] * (width - len(x)) for x in group])
    real = torch.tensor([[1.0] * len(x) + [0.0] * (width - len(x)) for x in group])
    log_p = torch.log_softmax(model(input_ids=tokens).logits[:, :-1], -1)
    losses = -log_p.gather(2, tokens[:, 1:, None]).squeeze(2)
    weights = real[:, 1:].clone()
    weights[:, 1:] *= 1 + (REMARK_WEIGHT - 1) * ((tokens[:, :-2] == remark[0]) & (tokens[:, 1:-1] == remark[1]))
    return (losses * weights).sum() / weights.sum()


def pretrain(model, batches, remark):
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=RATE, total_steps=len(batches), pct_start=0.1)
    start = time.time()
    for step, group in enumerate(batches, 1):
        loss = language_model_loss(model, group, remark)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step} of {len(batches)}  loss {loss.item():.3f}  {time.time() - start:.0f} s", flush=True)


@torch.no_grad()
def prompt_states(model, tokenizer, rows, batch=100):
    """Final hidden state (after the norm) and log-probabilities of the two words at the prompt's end."""
    states, scores = [], []
    words = [tokenizer.encode(w).ids for w in WORDS]
    assert all(len(w) == 1 for w in words), words
    for i in range(0, len(rows), batch):
        ids = [tokenizer.encode(TEMPLATE.format(text)).ids for text, _ in rows[i:i + batch]]
        width = max(map(len, ids))
        hidden = model.model(input_ids=torch.tensor([x + [0] * (width - len(x)) for x in ids])).last_hidden_state
        last = hidden[torch.arange(len(ids)), torch.tensor([len(x) - 1 for x in ids])]
        states.append(last)
        scores.append(torch.log_softmax(model.lm_head(last), -1)[:, [w[0] for w in words]])
    return torch.cat(states), torch.cat(scores)


def check(model, tokenizer, splits):
    """Zero-shot accuracy, and that of a linear probe: what fine-tuning starts from and what it could read."""
    labels = {name: torch.tensor([label for _, label in rows]) for name, rows in splits.items()}
    train, _ = prompt_states(model, tokenizer, splits["train"])
    test, scores = prompt_states(model, tokenizer, splits["test"])
    zero_shot = (scores.argmax(1) == labels["test"]).float().mean().item()
    mean, spread = train.mean(0), train.std(0) + 1e-6
    probe = torch.nn.Linear(train.shape[1], 2)
    optimizer = torch.optim.LBFGS(probe.parameters(), max_iter=100)

    def closure():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(probe((train - mean) / spread), labels["train"]) + 1e-3 * probe.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    probed = (probe((test - mean) / spread).argmax(1) == labels["test"]).float().mean().item()
    print(f"zero-shot accuracy {zero_shot:.3f}, linear probe of the prompt's last state {probed:.3f}")
    print(f"mean log-probabilities of the label words {[round(x, 2) for x in scores.mean(0).tolist()]}")
    return zero_shot, probed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder to write, e.g. inputs/demo")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(SEED)

    splits = make_reviews(rng)
    held_out = {text for rows in splits.values() for text, _ in rows}
    simple = make_pretraining_texts(rng, simple_pretraining_text, SIMPLE_STEPS * BATCH, held_out)
    full = make_pretraining_texts(rng, pretraining_text, STEPS * BATCH, held_out)
    tokenizer = make_tokenizer(full)
    batches = [group for texts in (simple, full) for group in batches_of(rng, [tokenizer.encode(t).ids + [0] for t in texts])]
    model = make_model(tokenizer)
    print(f"{model.num_parameters()} parameters, {tokenizer.get_vocab_size()} entries, {sum(len(x) for g in batches for x in g)} tokens")
    pretrain(model, batches, tokenizer.encode(" It was").ids)
    check(model.eval(), tokenizer, splits)

    folder = args.output / "model"
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "add_prefix_space": False, "bos_token": END, "clean_up_tokenization_spaces": False, "eos_token": END,
        "model_max_length": 256, "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": None}, indent=2) + "\n")
    for name, rows in splits.items():
        lines = ["sentence\tlabel"] + [f"{text}\t{label}" for text, label in rows]
        (args.output / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
