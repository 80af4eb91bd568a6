# SPDX-License-Identifier: BSD-3-Clause
"""What bench_peer measures, and what is wanted of it on a machine with AMX."""

import dataclasses
import typing


@dataclasses.dataclass(frozen=True)
class Model:
    """A model and its batch. Layers and width (heads times their size) are what attention's products are counted from."""
    layers: int
    width: int
    parameters: str         # the deck's model
    peer: str               # what pytorch_mezo.py takes
    sequences: int
    tokens: typing.Optional[int]  # of a sequence; None: SST-2's sentences
    over_floor: float       # the most that a step may take over its floor


@dataclasses.dataclass(frozen=True)
class Ours:
    storage: str = "fp32"
    compute: str = "fp32"
    kind: str = "gaussian"
    directions: int = 1
    difference: str = "central"


@dataclasses.dataclass(frozen=True)
class Peer:
    precision: str = "fp32"
    form: str = "published"
    kind: str = "gaussian"

    def __str__(self):
        return f"PyTorch {self.precision}, {'as published' if self.form == 'published' else 'best form'}, {self.kind}"


@dataclasses.dataclass(frozen=True)
class Case:
    title: str
    model: str
    ours: Ours
    against: tuple    # of these the fastest
    aim: float        # times faster, with AMX
    possible: float   # times faster a step at its floor would be, with AMX: the lower end
    also: tuple = ()  # shown beside


SMOLLM2 = "{folder: models/smollm2-135m-instruct}"
MODELS = {
    "smollm2": Model(30, 576, SMOLLM2, "models/smollm2-135m-instruct", 16, None, 1.3),
    "opt-125m": Model(12, 768, "{shape: opt-125m, weights: random, seed: 1}", "opt-125m", 1, 2048, 1.15),
    "opt-1.3b": Model(24, 2048, "{shape: opt-1.3b, weights: random, seed: 1}", "opt-1.3b", 1, 2048, 1.15),
}
BEST = (Peer("fp32", "best"), Peer("bf16", "best"))
BEST_RADEMACHER = (Peer("fp32", "best", "rademacher"), Peer("bf16", "best", "rademacher"))
CASES = {
    1: Case("SmolLM2, SST-2, fp32, Gaussian", "smollm2", Ours(), (Peer(),), 6.5, 4.7 / 0.67, BEST),
    2: Case("the same, bf16 compute", "smollm2", Ours(compute="bf16"), BEST, 13, 4.5 / 0.30),
    3: Case("bf16, Rademacher, against Gaussian", "smollm2", Ours(compute="bf16", kind="rademacher"), BEST, 22, 4.5 / 0.17),
    4: Case("bf16, Rademacher, both", "smollm2", Ours(compute="bf16", kind="rademacher"), BEST_RADEMACHER, 4, 1.5 / 0.17),
    5: Case("OPT-125M, 1 x 2,048, fp32", "opt-125m", Ours(), (Peer(),), 1.9, 1.9, (Peer("fp32", "best"),)),
    6: Case("the same, bf16 compute", "opt-125m", Ours(compute="bf16"), (Peer("bf16"),), 4.7, 5.0, (Peer(),)),
    7: Case("OPT-1.3B, 1 x 2,048, bf16", "opt-1.3b", Ours("bf16", "bf16"), (Peer("bf16"),), 6.3, 6.6, (Peer(),)),
}
OTHER_CASES = {8: "evaluation", 9: "normals", 10: "memory", 11: "growth", 12: "directions"}
DIRECTIONS = {"central": (Ours(directions=4), 4.0), "forward": (Ours(directions=4, difference="forward"), 2.95)}
DECK = """model: {model}
data: {data}
zo: {{steps: 1000, batch: {batch}, seed: 1, epsilon: 1e-3, learning rate: 1e-6, kind: {kind}, directions: {directions},
     difference: {difference}}}
precision: {{storage: {storage}, compute: {compute}}}
output: {{folder: run, write models: never}}
"""


def deck_of(model, ours, tsv=None, tokens=None, sequences=None):
    sequences = sequences or model.sequences
    data = (f'{{task: sst2, train: "{tsv}", dev examples: 0, max length: 256, leading token: none}}' if tsv else
            f"{{task: random tokens, sequence length: {tokens or model.tokens}, train examples: {4 * sequences}}}")
    return DECK.format(model=model.parameters, data=data, batch=sequences, **dataclasses.asdict(ours))


def read_cases(text):
    """Numbers of cases in a list as 1-4,8."""
    known, numbers = {**CASES, **OTHER_CASES}, set()
    for word in text.split(","):
        first, _, last = word.partition("-")
        try:
            numbers |= set(range(int(first), int(last or first) + 1))
        except ValueError:
            numbers.add(word)
    if not numbers or not numbers <= set(known):
        raise ValueError(f"--cases {text}: expected numbers from {min(known)} to {max(known)}, as 1-4,8")
    return sorted(numbers)


def flop_of(model, result, length):
    """Of a step's products: with the weights as the program counts them, and those of causal attention."""
    evaluations = result["evaluations"]
    attention = 2 * evaluations * model.layers * model.width * result["tokens_per_step"] * length
    return result["gemm_gflops"] * 1e9 * result["gemm_s"] + attention


def floor_of(model, result, length, stored_bytes, gemm_flops, memory_bytes):
    """Seconds that a step cannot do without, at rates measured in the same run."""
    return {"products_s": flop_of(model, result, length) / gemm_flops, "z_s": result["z_s"],
            "theta_s": 2 * stored_bytes / memory_bytes}
