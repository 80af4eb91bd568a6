# SPDX-License-Identifier: BSD-3-Clause
"""Log-probabilities of SST-2's answers after each prompt in transformers (fp32) against those that distzo2 wrote."""

import argparse
import json
import pathlib

import torch
import transformers


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="holds model/, predictions.jsonl and evaluation.json")
    parser.add_argument("tsv", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    args = parser.parse_args()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.folder / "model")
    model = transformers.AutoModelForCausalLM.from_pretrained(args.folder / "model", dtype=torch.float32).eval()
    rows = [line.split("\t") for line in args.tsv.read_text(encoding="utf-8").splitlines()[1:]]
    ours = [json.loads(line) for line in (args.folder / "predictions.jsonl").read_text().splitlines()]
    assert len(rows) == len(ours)
    answers = [tokenizer(" " + word, add_special_tokens=False).input_ids for word in ("terrible", "great")]
    assert all(len(ids) == 1 for ids in answers)
    right, largest = 0, 0.0
    with torch.no_grad():
        for (sentence, label), here in zip(rows, ours):
            ids = tokenizer(sentence.strip() + " It was", add_special_tokens=False).input_ids
            log_prob = torch.log_softmax(model(torch.tensor([ids])).logits[0, -1].double(), -1)
            scores = [log_prob[answer[0]].item() for answer in answers]
            right += (scores[1] > scores[0]) == (label == "1")
            largest = max(largest, *(abs(a - b) for a, b in zip(scores, here["scores"])))
    result = {
        "what": "candidate log-probabilities of results/smollm2_sst2/seed1's exported model on SST-2 validation: "
                f"distzo2 evaluate --predictions against transformers {transformers.__version__} in fp32",
        "made_by": "scripts/results_transformers", "examples": len(rows), "right_in_transformers": right,
        "right_here": sum(p["label"] == p["predicted"] for p in ours), "largest_difference_of_log_probability": largest,
        "git_hash": json.loads((args.folder / "evaluation.json").read_text())["git_hash"]}
    args.output.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
