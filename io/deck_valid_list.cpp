// SPDX-License-Identifier: BSD-3-Clause
// The one documented list of what a deck may hold: a key's type, bounds, default and meaning stand here and nowhere
// else.
#include <Teuchos_ParameterList.hpp>
#include <Teuchos_RCP.hpp>

#include "core/model_shapes.hpp"
#include "core/threads.hpp"
#include "io/deck.hpp"

namespace distzo2 {

namespace {

using Teuchos::ParameterList;

constexpr double max_u32 = 4294967295.0;
constexpr double max_ranks = 32767.0;

Teuchos::RCP<const Teuchos::ParameterEntryValidator> rule(KeyRule r) {
  return Teuchos::rcp(new DeckKey(std::move(r)));
}

Teuchos::RCP<const Teuchos::ParameterEntryValidator> path() {
  return rule({.kind = KeyKind::path});
}

Teuchos::RCP<const Teuchos::ParameterEntryValidator> word(std::vector<std::string> words) {
  return rule({.kind = KeyKind::word, .words = std::move(words)});
}

Teuchos::RCP<const Teuchos::ParameterEntryValidator> flag() {
  return rule({.kind = KeyKind::boolean});
}

void add_model(ParameterList& list) {
  list.set("folder", std::string(),
           "Folder of the model in Hugging Face's form: config.json, safetensors, tokenizer. Either this or `shape`.",
           rule({.kind = KeyKind::path, .example = "path/to/the/folder"}));
  std::vector<std::string> shapes = model_shape_names();
  shapes.insert(shapes.begin(), "none");
  list.set("shape", std::string("none"),
           "A model without a folder: the dimensions of a published model, with `weights: random`, to plan and to "
           "measure.",
           word(std::move(shapes)));
  list.set("family", std::string("auto"), "The family of the model; auto: that of its folder or shape.",
           word({"auto", "opt", "llama", "qwen3"}));
  list.set("weights", std::string("folder"),
           "Where the weights come from: the model's folder, or with `shape` from the counter generator: matrices of "
           "deviation 0.02, norms 1, biases 0.",
           word({"folder", "random"}));
  list.set("seed", 0ULL, "Seed of random weights.", rule({.kind = KeyKind::seed}));
  list.set("tied head", std::string("auto"),
           "Whether the head of a random model is its embedding; auto: as in the published model.",
           word({"auto", "true", "false"}));
  list.set("allow non-finite weights", false,
           "Take a model whose weights hold NaN or infinity; otherwise it is refused, naming the tensor.", flag());
}

void add_data(ParameterList& list) {
  list.set(
      "task", std::string(),
      "How a row becomes a prompt and its answers: the name of a file in inputs/tasks, or the path of such a file; or "
      "random tokens: sequences drawn from the whole vocabulary by `split seed`, without a file.",
      rule({.kind = KeyKind::task, .required = true, .example = "sst2"}));
  list.set("train", std::string(), "Training data, TSV with a header or JSONL. Needed by train.", path());
  list.set("dev", std::string(),
           "Data that runs are compared and the best model is chosen on. Without it, see `dev examples`.", path());
  list.set("test", std::string(), "Data of the initial and final evaluation; never used for selection.", path());
  list.set("train examples", std::string("all"),
           "How many examples are drawn from the training data; all: those not drawn for the dev set (random tokens: "
           "64).",
           rule({.kind = KeyKind::integer, .words = {"all"}, .min = 1, .max = max_u32, .unit = "examples"}));
  list.set(
      "dev examples", std::string("auto"),
      "How many examples are drawn for the dev set: from the dev file, or without one from the training data, apart "
      "from those trained on. auto: the whole dev file, or no dev set without one.",
      rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 0, .max = max_u32, .unit = "examples"}));
  list.set("split seed", 0ULL, "Seed of the draw of training and dev examples.", rule({.kind = KeyKind::seed}));
  list.set("sequence length", std::string("auto"),
           "Tokens of a sequence of random tokens, each with a loss term; auto: 2048, or as many as the model takes.",
           rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 1, .max = 1048576, .unit = "tokens"}));
  list.set("max length", 2048LL, "Longest sequence: prompt, answer and leading token.",
           rule({.kind = KeyKind::integer, .min = 2, .max = 1048576, .unit = "tokens"}));
  list.set("leading token", std::string("auto"),
           "Token in front of every prompt: auto (what the tokenizer puts there), none, or a token's id.",
           rule({.kind = KeyKind::integer, .words = {"auto", "none"}, .min = 0, .max = 2147483647}));
  list.set(
      "truncate", true,
      "Shorten prompts beyond `max length` (the leading token and the last tokens are kept); false: such an example "
      "is left out, and counted.",
      flag());
}

void add_zo(ParameterList& list) {
  list.set("objective", std::string("auto"),
           "Loss: mean over the label's tokens (language model), or cross-entropy over the candidates' mean token "
           "log-probabilities (classification); auto: what the task says.",
           word({"auto", "language model", "classification"}));
  list.set("steps", 20000LL, "Steps of the run.",
           rule({.kind = KeyKind::integer, .min = 1, .max = max_u32, .unit = "steps"}));
  list.set("batch", 16LL, "Examples of a step over all ranks (the global batch).",
           rule({.kind = KeyKind::integer, .min = 1, .max = 65536, .unit = "examples"}));
  list.set("seed", 0ULL, "Seed of directions, batches and stochastic rounding; 0 is a seed like any other.",
           rule({.kind = KeyKind::seed}));
  list.set("epsilon", 1e-3, "Size of the perturbation: losses are taken at theta + epsilon z and theta - epsilon z.",
           rule({.kind = KeyKind::number, .min = 1e-12, .max = 1.0}));
  list.set("directions", 1LL, "Directions q of a step; g is measured along each.",
           rule({.kind = KeyKind::integer, .min = 1, .max = 65535}));
  list.set("kind", std::string("gaussian"), "Distribution of the directions' elements: normal, or +1 and -1.",
           word({"gaussian", "rademacher"}));
  list.set("difference", std::string("central"),
           "central: (L+ - L-) / (2 epsilon), 2 q forward passes a step; forward: (L+ - L0) / epsilon, q + 1 of them.",
           word({"central", "forward"}));
  list.set("learning rate", 1e-6, "Learning rate after the warm-up. At 0 no bit of the model changes.",
           rule({.kind = KeyKind::number, .min = 0, .max = 1e6}));
  list.set("schedule", std::string("constant"),
           "Learning rate after the warm-up: constant, or down to 0 at the end along a line or half a cosine.",
           word({"constant", "linear", "cosine"}));
  list.set("warm-up", 0LL, "Steps over which the learning rate rises from 0, along a line.",
           rule({.kind = KeyKind::integer, .min = 0, .max = max_u32, .unit = "steps"}));
  list.set("weight decay", 0.0,
           "Matrices are multiplied by 1 - learning rate * weight decay each step; biases and norms are not.",
           rule({.kind = KeyKind::number, .min = 0, .max = 1e6}));
  list.set("clip", 0.0, "Limit of |g| as a multiple of its running median; 0: off. Both g are recorded.",
           rule({.kind = KeyKind::number, .min = 0, .max = 1e6}));
  list.set("diverged factor", 3.0,
           "Stop (exit code 4) when the mean loss of 20 steps exceeds this times that of the first 20; 0: never.",
           rule({.kind = KeyKind::number, .min = 0, .max = 1e6}));
  list.set("non-finite", std::string("skip"),
           "Where a loss is not finite: skip (the step is recorded and changes nothing) or stop (exit code 4).",
           word({"skip", "stop"}));
}

void add_precision(ParameterList& list) {
  list.set("storage", std::string("fp32"),
           "Type in which matrices are kept and updated; one-dimensional tensors are always fp32.",
           word({"fp32", "bf16", "fp16"}));
  list.set(
      "compute", std::string("fp32"),
      "Type of the two inputs of matrix products; sums are always fp32. fp16 holds nothing beyond 65,504, and CPUs "
      "multiply its values in fp32.",
      word({"fp32", "bf16", "fp16"}));
  list.set("rounding", std::string("stochastic"), "How an updated parameter is rounded to 16-bit storage.",
           word({"stochastic", "nearest"}));
  list.set("round every", 1LL, "Steps between two roundings of a parameter in 16-bit storage.",
           rule({.kind = KeyKind::integer, .min = 1, .max = 65536, .unit = "steps"}));
  list.set("reproducible", true,
           "Shapes of matrix products that give the same bits on any layout and thread count. On CPUs they cost "
           "nothing, and "
           "false is refused.",
           flag());
}

void add_memory(ParameterList& list) {
  const auto budget = [] { return rule({.kind = KeyKind::bytes, .words = {"auto"}}); };
  list.set(
      "device budget", std::string("auto"),
      "What parameters, buffers and activations may take of the device that computes; auto: its free memory less "
      "1 GiB. On CPUs alone only with `staging: always`, and then of parameters and their buffers; auto: the least "
      "that works.",
      budget());
  list.set("host budget", std::string("auto"),
           "What the program may allocate of the host's memory; auto: the least of the cgroup's limit, which most "
           "batch systems set, Slurm's and what is available, less a tenth; a note says where it is more than these. "
           "What does not fit streams from disk.",
           budget());
  list.set("scratch folder", std::string(),
           "Where parameters that fit no memory are kept, in a folder of the run's own; left out: the run's folder.",
           path());
  list.set("staging", std::string("auto"),
           "always: parameters pass through buffers of a device budget on CPUs too, where they could be read in place; "
           "auto: only where compute and store have memories of their own.",
           word({"auto", "always"}));
  list.set("groups", std::string("auto"),
           "Stream decoder blocks one matrix at a time (on) or whole (off); auto: whole, unless they do not fit.",
           word({"auto", "on", "off"}));
  list.set(
      "write back every", std::string("auto"),
      "Steps between two times that a streamed parameter is stored with its updates, which are replayed until "
      "then; a multiple of `round every`. No bit depends on it. auto: every rounding point in host memory; on disk "
      "up to eight steps, as far as replaying costs less than the writes would, at fixed rates of processor and disk, "
      "not this machine's (`plan` shows the reckoning).",
      rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 1, .max = 65536, .unit = "steps"}));
  list.set("buffers", std::string("auto"),
           "Buffers that streamed parameters pass through: one computes, one is filled, the third is stored meanwhile; "
           "auto: three where every step stores and they fit.",
           word({"auto", "2", "3"}));
  list.set("keep store", false, "Keep the parameters on disk after a good end; otherwise they are removed.", flag());
  list.set(
      "scratch persistent", false,
      "Whether the folder of what is on disk outlives the job: then it counts as a checkpoint, and each store there "
      "keeps a copy of the trajectory. A resume takes the longest of the copies and the run's own.",
      flag());
}

void add_rest(ParameterList& deck) {
  deck.sublist("parallel", false, "Ranks, started by mpirun or srun, and their threads. No bit depends on any of it.")
      .set("pertp", 1LL,
           "Ranks that share the evaluations of a step (perturbation parallelism); divides their number, 2 q for "
           "central, q + 1 for forward differences.",
           rule({.kind = KeyKind::integer, .min = 1, .max = max_ranks, .unit = "ranks"}))
      .set("ddp", std::string("auto"),
           "Ranks that share the examples of a step (data parallelism), at most the batch; auto: the ranks that were "
           "started, divided by pertp.",
           rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 1, .max = max_ranks, .unit = "ranks"}))
      .set("order", std::string("pertp inner"),
           "Which of the two has neighbouring ranks: pertp inner puts those that share examples side by side.",
           word({"pertp inner", "ddp inner"}))
      .set("slices", std::string("auto"),
           "auto: ranks of a node keep one copy of the parameters, of which each updates a slice, and read what is on "
           "disk once for all of them, where the host computes; off: a copy a rank.",
           word({"auto", "off"}))
      .set(
          "shared memory folder", std::string(),
          "Where that copy lies, as a file without a name that the ranks map: a folder of a file system in memory that "
          "has room for it; left out: where the MPI library puts its shared windows (/dev/shm).",
          path())
      .set("timeout", 120.0,
           "How long ranks wait for one that lives but does not arrive at a step's exchange; then the run ends with "
           "exit code 5.",
           rule({.kind = KeyKind::duration, .max = 1e6, .above_min = true}))
      .set(
          "consistency check every", std::string("auto"),
          "Steps between two comparisons of the parameters of all ranks, by digest, which the trajectory keeps, of one "
          "rank too; a difference ends the run with exit code 5. auto: 1000 where no parameter streams; 0: at the "
          "run's end alone, as always there.",
          rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 0, .max = max_u32, .unit = "steps"}))
      .set("device", std::string("auto"),
           "In a program for GPUs, which of those that a rank sees it computes on, from 0; auto: the rank's number on "
           "its node modulo their number, and two ranks on one are refused.",
           rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 0, .max = 1023}))
      .set("threads", std::string("auto"),
           "Threads of each rank; auto: OMP_NUM_THREADS, else every core it may use, divided by the ranks that may use "
           "the same.",
           rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 1, .max = max_host_threads, .unit = "threads"}));
  deck.sublist("checkpoint", false, "What survives an interruption.")
      .set("trajectory sync", 1.0, "How often the trajectory is made durable; 0 s: after every step.",
           rule({.kind = KeyKind::duration, .min = 0, .max = 86400}))
      .set("time limit", std::string("none"),
           "Wall-clock time since the program's start after which the run ends at a step's end or in an evaluation, "
           "resumable, with exit code 75.",
           rule({.kind = KeyKind::duration, .words = {"none"}, .max = 1e9, .above_min = true}))
      .set("every steps", std::string("none"),
           "Steps between two checkpoints of the parameters, which a resume begins with in place of the base model. "
           "none: the trajectory alone is kept, whose replay takes about a hundredth of the time that its steps took.",
           rule({.kind = KeyKind::integer, .words = {"none"}, .min = 1, .max = max_u32, .unit = "steps"}))
      .set("every minutes", std::string("none"), "The same by the clock; both may be given.",
           rule({.kind = KeyKind::number, .words = {"none"}, .max = 1e6, .above_min = true, .unit = "minutes"}))
      .set("keep", 2LL,
           "Checkpoints that stand beside each other; an old one goes once a new one is whole and durable. Each takes "
           "the bytes of the parameters in `precision/storage`.",
           rule({.kind = KeyKind::integer, .min = 1, .max = 1000, .unit = "checkpoints"}));
  deck.sublist("output", false, "What a run writes.")
      .set("folder", std::string(), "Folder of the run; left out: runs/<deck>-<NNN> in the current folder.", path())
      .set("log every", std::string("10 s"), "A line of the log every so many steps (10) or so often (10 s).",
           rule({.kind = KeyKind::interval}))
      .set("evaluate every", std::string("auto"),
           "Steps between two evaluations on the dev set; auto: a fifth of the run; 0: none but at its start and end.",
           rule({.kind = KeyKind::integer, .words = {"auto"}, .min = 0, .max = max_u32, .unit = "steps"}))
      .set("write models", std::string("auto"),
           "Whether final/ and best/ are written; auto: models under 10 GB (model and trajectory give both again).",
           word({"auto", "always", "never"}))
      .set("trace file", std::string(),
           "A timeline of what reads, computes and writes in each step, for Perfetto, chrome://tracing and "
           "scripts/plot_timeline; only where parameters stream: else a note says so and there is no file. Left out: "
           "none.",
           path());
  deck.sublist(
          "expected", false,
          "What a run of this deck must reach: lines at its end name what it missed, the summary says whether it did.")
      .set("accuracy at least", std::string("none"), "Accuracy of the final evaluation.",
           rule({.kind = KeyKind::number, .words = {"none"}, .min = 0, .max = 1}))
      .set("final loss at most", std::string("none"), "Loss of the final evaluation.",
           rule({.kind = KeyKind::number, .words = {"none"}, .min = 0, .max = 1e6}));
}

ParameterList make_valid_deck() {
  ParameterList deck("deck");
  add_model(deck.sublist("model", false, "The model to fine-tune."));
  add_data(deck.sublist("data", false, "The task and its data. Paths are relative to the deck's folder."));
  add_zo(deck.sublist("zo", false, "The zeroth-order method. Defaults are those of MeZO (arXiv 2305.17333)."));
  add_precision(deck.sublist("precision", false, "Types of numbers."));
  add_memory(deck.sublist("memory", false, "Where parameters are kept, and how much memory there is for a run."));
  add_rest(deck);
  return deck;
}

}  // namespace

const Teuchos::ParameterList& valid_deck() {
  static const ParameterList list = make_valid_deck();
  return list;
}

}  // namespace distzo2
