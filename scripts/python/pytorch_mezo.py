# SPDX-License-Identifier: BSD-3-Clause
"""MeZO in PyTorch, in two forms. `published`: as its authors publish it, written anew: z is drawn a parameter at a time with
torch.normal, theta is perturbed three times a step and updated once, logits of all tokens. `best`: the same in place, z
drawn in fp32 into one buffer, logits of each prompt's last token only. In both a sentence is one sequence, whatever the
number of its answers, which favours them. Answers each JSON line of standard input with one."""

import argparse
import json
import os
import sys
import time

import torch
import transformers

EPSILON, LEARNING_RATE = 1e-3, 1e-6
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
WARM_UP_SENTENCES, WARM_UP_TOKENS = 2, 64
SHAPES = {"opt-125m": (12, 768, 12), "opt-1.3b": (24, 2048, 32)}  # layers, width, heads


class Filler:
    """z in fp32 in one buffer, by the fastest means that PyTorch was found to offer for either kind: random bits of 64-bit
    words become signs eight at a time from a table, at several times the speed of `bernoulli_`."""

    def __init__(self, most):
        self.z = torch.empty(-(-most // 64) * 64)
        self.signs = (((torch.arange(256)[:, None] >> torch.arange(8)) & 1) * 2 - 1).float()

    def __call__(self, count, kind):
        if kind == "gaussian":
            return self.z[:count].normal_()
        octets = torch.empty(-(-count // 64), dtype=torch.int64).random_(-2**63, None).view(torch.uint8).int()
        torch.index_select(self.signs, 0, octets, out=self.z[:8 * octets.numel()].view(-1, 8))
        return self.z[:count]


class Published:
    def __init__(self, parameters):
        self.parameters = parameters

    def add(self, seed, scale, _kind):
        torch.manual_seed(seed)
        for p in self.parameters:
            z = torch.normal(mean=0, std=1, size=p.data.size(), dtype=p.data.dtype)
            p.data = p.data + scale * z


class Best:
    def __init__(self, parameters):
        self.parameters = parameters
        self.fill = Filler(max(p.numel() for p in parameters))

    def add(self, seed, scale, kind):
        torch.manual_seed(seed)
        for p in self.parameters:
            p.data.add_(self.fill(p.numel(), kind).view(p.shape), alpha=scale)


class Mezo:
    def __init__(self, model, precision, form):
        dtype = PRECISIONS[precision]
        self.tokenizer = None
        if model in SHAPES:
            layers, width, heads = SHAPES[model]
            config = transformers.OPTConfig(num_hidden_layers=layers, hidden_size=width, word_embed_proj_dim=width,
                                            num_attention_heads=heads, ffn_dim=4 * width)
            self.model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
        else:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(model)
            self.tokenizer.padding_side, self.tokenizer.pad_token = "left", self.tokenizer.eos_token
            self.words = torch.tensor([self.tokenizer(word, add_special_tokens=False)["input_ids"][0]
                                       for word in (" terrible", " great")])
            self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=dtype)
        self.model.eval()
        self.parameters = list(self.model.parameters())
        self.best = form == "best"
        self.direction = (Best if self.best else Published)(self.parameters)
        self.warm = set()

    def rows(self, path):
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\n").split("\t") for line in file][1:]

    def sentences(self, rows):
        batch = self.tokenizer([sentence.strip() + " It was" for sentence, _ in rows], return_tensors="pt", padding=True)
        return batch, torch.tensor([int(label) for _, label in rows])

    @torch.inference_mode()
    def scores(self, batch):
        """Log-probabilities of the two answers."""
        keep = {"logits_to_keep": 1} if self.best else {}
        logits = self.model(**batch, use_cache=False, **keep).logits[:, -1]
        return torch.log_softmax(logits.float(), -1)[:, self.words]

    def loss_of_sentences(self, batch, labels):
        return torch.nn.functional.cross_entropy(self.scores(batch), labels).item()

    @torch.inference_mode()
    def loss_of_tokens(self, ids):
        logits = self.model(input_ids=ids, use_cache=False).logits
        return torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten()).item()

    @torch.no_grad()
    def step(self, loss, kind):
        seed = int(torch.randint(10**9, (1,)))
        self.direction.add(seed, EPSILON, kind)
        plus = loss()
        self.direction.add(seed, -2 * EPSILON, kind)
        minus = loss()
        self.direction.add(seed, EPSILON, kind)
        self.direction.add(seed, -LEARNING_RATE * (plus - minus) / (2 * EPSILON), kind)
        return (plus + minus) / 2

    def timed_step(self, kind, sentences=None, tokens=None):
        if sentences:
            rows = self.rows(sentences)
            batch, few = self.sentences(rows), self.sentences(rows[:WARM_UP_SENTENCES])
            count, loss = int(batch[0]["attention_mask"].sum()), lambda: self.loss_of_sentences(*batch)
            first = lambda: self.loss_of_sentences(*few)
        else:
            ids = torch.randint(self.model.config.vocab_size, tuple(tokens))
            count, loss = ids.numel(), lambda: self.loss_of_tokens(ids)
            first = lambda: self.loss_of_tokens(ids[:1, :WARM_UP_TOKENS])
        if kind not in self.warm:
            self.step(first, kind)
            self.warm.add(kind)
        start = time.perf_counter()
        value = self.step(loss, kind)
        return {"seconds": time.perf_counter() - start, "tokens": count, "loss": value}

    def evaluate(self, path, batch, examples):
        rows = self.rows(path)[:examples]
        batches = [self.sentences(rows[i:i + batch]) for i in range(0, len(rows), batch)]
        start = time.perf_counter()
        right = sum(int((self.scores(inputs).argmax(1) == labels).sum()) for inputs, labels in batches)
        return {"seconds": time.perf_counter() - start, "examples": len(rows), "accuracy": right / len(rows)}


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def rate(work, amount, least=0.5):
    """Amount a second, the best of as many as fit into `least` seconds; three at least."""
    work()
    best, begun, i = 0.0, time.perf_counter(), 0
    while i < 3 or time.perf_counter() - begun < least:
        start = time.perf_counter()
        work()
        best, i = max(best, amount / (time.perf_counter() - start)), i + 1
    return best


def rates():
    """What PyTorch reaches on this machine: products, copies of memory (read and written bytes), z."""
    result, count = {"gemm_gflops": {}, "normals": {}}, 1 << 24
    for name, dtype in PRECISIONS.items():
        for size in (256, 2048):  # the larger one only where there is a kernel for it
            a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
            if size == 256 or result["gemm_gflops"][name] > 20:
                result["gemm_gflops"][name] = rate(lambda: torch.mm(a, b), 2e-9 * size**3)
        result["normals"][name] = rate(lambda: torch.normal(mean=0, std=1, size=(count,), dtype=dtype), count)
    fill = Filler(count)
    result["normals"]["in place"] = rate(lambda: fill(count, "gaussian"), count)
    result["rademacher"] = rate(lambda: fill(count, "rademacher"), count)
    source = torch.zeros(1 << 26)
    target = torch.zeros_like(source)
    result["memory_bytes"] = rate(lambda: target.copy_(source), 2.0 * source.numel() * source.element_size())
    return result


def write_model(folder, layers):
    """SmolLM2's widths with random weights."""
    config = transformers.LlamaConfig(vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=layers,
                                      num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192,
                                      tie_word_embeddings=True)
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    return {"layers": layers}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a folder, or one of: " + ", ".join(SHAPES))
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--form", choices=("published", "best"), default="published")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    mezo = Mezo(args.model, args.precision, args.form) if args.model else None
    commands = {"rates": rates, "write_model": write_model}
    if mezo:
        commands |= {"step": mezo.timed_step, "evaluate": mezo.evaluate}
    hello = {"pytorch": torch.__version__, "transformers": transformers.__version__}
    if mezo:
        hello["parameters"] = sum(p.numel() for p in mezo.parameters)
    print(json.dumps(hello), flush=True)
    for line in sys.stdin:
        command, words = json.loads(line)
        answer = commands[command](**words)
        answer["peak_bytes"] = peak_bytes()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
