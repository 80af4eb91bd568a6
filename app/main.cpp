// SPDX-License-Identifier: BSD-3-Clause
#include "app/build_info.hpp"
#include "app/commands.hpp"
#include "app/kokkos_tools.hpp"
#include "app/plan_prediction.hpp"
#include "app/rank_devices.hpp"
#include "app/run_config.hpp"
#include "app/signals.hpp"
#include "app/standard_streams.hpp"
#include "app/threads.hpp"
#include "core/compute_memory.hpp"
#include "core/gemm.hpp"
#include "core/kokkos_scope.hpp"
#include "core/simd/kernels.hpp"
#include "io/unicode.hpp"
#include "io/units.hpp"
#include "parallel/job.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <system_error>

namespace {

using namespace distzo2;

/// For CLI11: an option given without a value is no option left out.
std::string not_empty(const std::string& text) {
  return text.empty() ? "the value is empty" : std::string();
}

/// For CLI11: how many steps there are is known once the trajectory is read.
std::string step_problem(const std::string& text) {
  return parse_unsigned(text) ? std::string()
                              : "\"" + text + "\" is no step; accepted: 0 to the number of steps of the trajectory";
}

void add_deck(CLI::App& command, DeckOptions& options) {
  command.add_option("deck", options.deck, "the input deck (YAML, or Teuchos XML by its extension)")
      ->required()
      ->check(not_empty);
  command.add_option("--set", options.sets, "override a key: --set \"zo/learning rate=1e-6\" (repeatable)")
      ->allow_extra_args(false);
}

std::string version_text() {
  return build_summary() + "GEMM            " + gemm_fingerprint() + "\nkernels         " + simd_kernels().name;
}

/// One line, whatever names and values it quotes.
void report(const std::string& message) {
  std::fprintf(stderr, "distzo2: %s\n", printable(message).c_str());
}

/// What was printed could not be written: an error, unless nobody wants to read any more of it.
ExitCode unwritten(const char* why) {
  if (reader_is_gone()) return ExitCode::done;
  report(std::string("what the command prints cannot be written") + why);
  return ExitCode::file;
}

/// Writes the last of what was printed.
ExitCode flushed() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? ExitCode::done : unwritten(" (is the disk full?)");
}

/// Kokkos tells of memory that it did not get by an error of no type of its own, with a text of several lines.
bool lacks_memory(const std::string& what) {
  return what.find("failed to allocate") != std::string::npos;
}

/// Where a sub-command that this program lacks is found; empty for one that no build has.
std::string of_another_build(const std::string& name) {
  if (name == "device" && !built_for_device()) return " in a program for CPUs; one that is built for GPUs has it";
  if ((name == "step" || name == "stream") && built_for_device())
    return " in a program for GPUs; one that is built for CPUs has it";
  return {};
}

/// What to say where the first words name no sub-command, else an empty text: CLI11 would only miss one.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const CLI::App* next = nullptr;
    std::set<std::string> names;
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
      names.insert(command->get_name());
      if (command->check_name(argv[i])) next = command;
    }
    if (names.empty()) return {};
    if (next == nullptr) {
      const std::string elsewhere = of_another_build(argv[i]);
      const std::string near = elsewhere.empty() ? nearest_name(argv[i], names) : "";
      return fmt::format("there is no sub-command \"{}\"{}{}; accepted: {}", argv[i], elsewhere,
                         near.empty() ? near : fmt::format("; did you mean \"{}\"?", near), fmt::join(names, ", "));
    }
    at = next;
  }
  return {};
}

/// What the command line asks for. `run` gets what the deck says; without a deck, an empty configuration.
struct Command {
  const DeckOptions* deck = nullptr;
  std::function<ExitCode(const RunConfig&, Job&)> run;
  bool trains = false;  // on all ranks of a job; it admits stop signals itself, once it can stop at a step's end
};

/// Why a command ended, in one line; nothing where nobody reads.
struct Failure {
  ExitCode code = ExitCode::internal;
  std::string message;
};

/// Of the exception that is being handled.
Failure failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return {ExitCode::file, error.what()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::internal, "not enough memory"};
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) return {ExitCode::internal, std::string("internal error: ") + error.what()};
    if (reader_is_gone()) return {ExitCode::done, {}};
    return {ExitCode::file, std::string("what the command prints cannot be written: ") + error.what()};
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return {ExitCode::internal,
            lacks_memory(what) ? "not enough memory: " + what.substr(0, what.find('\n')) : "internal error: " + what};
  }
}

/// One of several processes that a launcher started, or the only one. A command for one of them lets none begin.
bool speaks(const std::optional<Launcher>& launcher) {
  return !launcher || launcher->rank == 0;
}
void refuse_ranks(const std::optional<Launcher>& launcher) {
  if (launcher && launcher->ranks > 1)
    throw Error(ExitCode::usage, fmt::format("{} started {} processes, and only train runs on several; start this one "
                                             "without it",
                                             launcher->name, launcher->ranks));
}

/// Reads the deck and runs a command with Kokkos up, which must know the threads before anything else happens. Catches
/// once, prints once; on several ranks, which end together, once for all of them.
ExitCode run(const Command& command) {
  const std::optional<Launcher> launcher = find_launcher();
  std::optional<Job> job;
  Failure failed;
  try {
    if (!command.trains) refuse_ranks(launcher);
    job.emplace(command.trains ? launcher : std::nullopt, report);
    const RunConfig config =
        command.deck == nullptr ? RunConfig{} : read_run_config(command.deck->deck, command.deck->sets);
    const int device = choose_device(*job, config);
    check_kokkos_tools();
    const KokkosScope kokkos(thread_count(config.parallel.threads, job->ranks_on_these_cores()), device);
    if (!command.trains) admit_stop_signals();
    const ExitCode code = command.run(config, *job);
    const ExitCode flush = flushed();
    return code == ExitCode::done ? flush : code;
  } catch (...) {
    failed = failure();
  }
  if (job && job->world().size() > 1) {
    if (failed.code == ExitCode::done) failed = {ExitCode::file, "nobody reads any more what the run prints"};
    return static_cast<ExitCode>(job->fail(static_cast<int>(failed.code), failed.message));
  }
  if (failed.code != ExitCode::done && speaks(launcher)) report(failed.message);
  return failed.code;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  prepare_signals();

  // 1. The command line.
  CLI::App app("DistZO2: zeroth-order fine-tuning of language models, with forward passes only", "distzo2");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  Command command;

  TrainOptions train;
  std::string resume;
  CLI::App& train_app = *app.add_subcommand("train", "fine-tune a model as a deck says");
  add_deck(train_app, train.deck);
  CLI::Option& resume_option =
      *train_app
           .add_option("--resume", resume,
                       "auto: go on with the run in the deck's or the newest run folder; STEP: with that run from an "
                       "earlier step on, the later ones being set aside; PATH: with the run of this folder, or of this "
                       "checkpoint, from where it is; in another output/folder a new run begins with its steps")
           ->check(not_empty);
  train_app
      .add_option("--change", train.changes,
                  "let the deck change this key of the run's mathematics from here on: --change \"zo/learning rate\" "
                  "(repeatable)")
      ->needs(&resume_option)
      ->allow_extra_args(false);
  train_app.callback([&] {
    train.resume = !resume.empty();
    train.resume_step = parse_unsigned(resume);
    if (train.resume && resume != "auto" && !train.resume_step) train.resume_path = resume;
    command = {&train.deck, [&](const RunConfig& config, Job& job) { return train_command(train, config, job); }, true};
  });

  EvaluateOptions evaluate;
  CLI::App& evaluate_app =
      *app.add_subcommand("evaluate", "accuracy, confusion counts and loss of a model on a deck's data");
  add_deck(evaluate_app, evaluate.deck);
  evaluate_app.add_option("--model", evaluate.model, "a model folder in place of the deck's")->check(not_empty);
  evaluate_app
      .add_option("--predictions", evaluate.predictions,
                  "write label, prediction and candidate scores of every example to this JSONL file")
      ->check(not_empty);
  evaluate_app.add_flag("--json", evaluate.deck.json, "print JSON");
  evaluate_app.callback([&] {
    command = {&evaluate.deck, [&](const RunConfig& config, Job&) { return evaluate_command(evaluate, config); }};
  });

  ExportOptions exported;
  std::string step;
  CLI::App& export_app = *app.add_subcommand("export", "write theta of a step as a Hugging Face folder");
  export_app.add_option("--trajectory", exported.trajectory, "trajectory.zoj, or the run folder that holds it")
      ->required()
      ->check(not_empty);
  export_app.add_option("--model", exported.model, "the base model's folder (default: the run's deck names it)")
      ->check(not_empty);
  export_app.add_option("--step", step, "theta after this many steps (default: all)")
      ->type_name("UINT")
      ->check(not_empty)
      ->check(step_problem);
  export_app.add_option("--output", exported.output, "the folder to write; must not exist")
      ->required()
      ->check(not_empty);
  export_app.add_flag("--json", exported.json, "print JSON");
  export_app.callback([&] {
    if (!step.empty()) exported.step = parse_unsigned(step);
    command.run = [&](const RunConfig&, Job&) { return export_command(exported); };
  });

  VerifyOptions verified;
  CLI::App& verify_app = *app.add_subcommand(
      "verify", "replay a trajectory on its base model, compare every digest that it holds; exit code 6: one differs");
  verify_app.add_option("trajectory", verified.trajectory, "trajectory.zoj, or the run folder that holds it")
      ->required()
      ->check(not_empty);
  verify_app.add_option("--model", verified.model, "the base model's folder (default: the run's deck names it)")
      ->check(not_empty);
  verify_app.add_flag("--json", verified.json, "print JSON");
  verify_app.callback([&] { command.run = [&](const RunConfig&, Job&) { return verify_command(verified); }; });

  InspectOptions inspect;
  CLI::App& inspect_app = *app.add_subcommand("inspect", "what a trajectory, a run folder or a model folder holds");
  inspect_app.add_option("path", inspect.path, "trajectory.zoj, a run folder or a model folder")
      ->required()
      ->check(not_empty);
  inspect_app.add_flag("--json", inspect.json, "print JSON");
  inspect_app.callback([&] { command.run = [&](const RunConfig&, Job&) { return inspect_command(inspect); }; });

  DeckOptions validate;
  CLI::App& validate_app =
      *app.add_subcommand("validate", "check a deck with its model and data, show examples and cost");
  add_deck(validate_app, validate);
  validate_app.callback([&] {
    command = {&validate, [](const RunConfig& config, Job&) { return validate_command(config); }};
  });

  PlanOptions plan;
  std::string gpu, layout;
  CLI::App& plan_app =
      *app.add_subcommand("plan", "where parameters and buffers of a deck's run will lie, and their bytes");
  add_deck(plan_app, plan.deck);
  plan_app
      .add_option("--gpu", gpu,
                  "plan for one GPU with this much free memory (\"80 GB\"), whatever this program is built for")
      ->check([](const std::string& text) {
        return parse_bytes(text) ? std::string()
                                 : "\"" + text + "\" is no amount of memory with its unit (80 GB, 24 GiB)";
      });
  CLI::Option& machine_file =
      *plan_app
           .add_option("--machine", plan.machine,
                       "plan for the machine of this file (of bench machine, or inputs/machines), and predict a step")
           ->check(not_empty)
           ->excludes("--gpu");
  plan_app.add_option("--layout", layout, "PertP x DDP of the prediction: 2x4 (default: 1x1)")
      ->needs(&machine_file)
      ->check([](const std::string& text) {
        return parse_layout(text) ? std::string()
                                  : "\"" + text + "\" is no layout; accepted: ranks of PertP x ranks of DDP, as 2x4";
      });
  plan_app.add_flag("--json", plan.deck.json, "print JSON");
  plan_app.callback([&] {
    if (!gpu.empty()) plan.gpu_bytes = parse_bytes(gpu);
    if (!layout.empty()) plan.layout = parse_layout(layout);
    command = {&plan.deck, [&](const RunConfig& config, Job&) { return plan_command(plan, config); }};
  });

  DeviceOptions device;
  if (built_for_device()) {
    CLI::App& device_app = *app.add_subcommand("device", "the GPU that this program computes on");
    device_app.add_flag("--json", device.json, "print JSON");
    device_app.callback([&] { command.run = [&](const RunConfig&, Job&) { return device_command(device); }; });
  }

  DeckDocsOptions docs;
  CLI::App& docs_app = *app.add_subcommand("deck-docs", "every deck key: type, default, meaning");
  docs_app.add_flag("--starter", docs.starter, "a commented deck to begin with");
  docs_app.callback([&] { command.run = [&](const RunConfig&, Job&) { return deck_docs_command(docs); }; });

  BenchStepOptions bench;
  CLI::App& bench_app = *app.add_subcommand("bench", "measure");
  bench_app.require_subcommand(1);
  CLI::App& step_app = *bench_app.add_subcommand("step", bench_step_text);
  add_deck(step_app, bench.deck);
  step_app.add_option("--repeats", bench.repeats, "steps measured")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  step_app
      .add_option("--noise-pairs", bench.noise_pairs,
                  "steps over which the noise of g in bf16 compute is measured; 0: not at all")
      ->check(CLI::Range(0U, 1000U))
      ->capture_default_str();
  step_app.add_flag("--json", bench.deck.json, "print JSON");
  step_app.callback([&] {
    command = {&bench.deck, [&](const RunConfig& config, Job&) { return bench_step_command(bench, config); }};
  });

  BenchStreamOptions stream;
  CLI::App& stream_app = *bench_app.add_subcommand("stream", bench_stream_text);
  add_deck(stream_app, stream.deck);
  stream_app.add_option("--repeats", stream.repeats, "turns measured")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  stream_app.add_flag("--json", stream.deck.json, "print JSON: a line a turn, then the result");
  stream_app.callback([&] {
    command = {&stream.deck, [&](const RunConfig& config, Job&) { return bench_stream_command(stream, config); }};
  });

  BenchMachineOptions machine;
  CLI::App& machine_app = *bench_app.add_subcommand("machine", bench_machine_text);
  machine_app.add_option("--output", machine.output, "the file to write (default: it is printed)")->check(not_empty);
  machine_app.add_option("--scratch", machine.scratch, "a folder on the disk to measure; 512 MiB are used for a while")
      ->check(not_empty)
      ->capture_default_str();
  machine_app.callback([&] { command.run = [&](const RunConfig&, Job&) { return bench_machine_command(machine); }; });

  if (built_for_device()) {  // they take a CPU's step apart
    bench_app.remove_subcommand(&step_app);
    bench_app.remove_subcommand(&stream_app);
    bench_app.remove_subcommand(&machine_app);
  }

  BenchSpeedOptions speed;
  CLI::App& speed_app = *bench_app.add_subcommand("speed", bench_speed_text);
  add_deck(speed_app, speed.deck);
  speed_app.add_flag("--json", speed.deck.json, "print JSON");
  speed_app.callback([&] {
    command = {&speed.deck, [&](const RunConfig& config, Job&) { return bench_speed_command(speed, config); }};
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return static_cast<int>(flushed());
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return static_cast<int>(flushed());
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_command(app, argc, argv);
    if (speaks(find_launcher())) report((unknown.empty() ? error.what() : unknown) + "; see distzo2 --help");
    return static_cast<int>(ExitCode::usage);
  } catch (const Error& error) {  // --version looks at the processor and at DISTZO2_ISA
    report(error.what());
    return static_cast<int>(error.code());
  }

  // 2. The command.
  return static_cast<int>(run(command));
}
