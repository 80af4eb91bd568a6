// SPDX-License-Identifier: BSD-3-Clause
// What a run says of models that it could not write: which folder lacks its model.
#include "app/run_evaluations.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <tuple>

#include "app/resume.hpp"
#include "parallel/job.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

/// A run of the tiny project in fp16, whose norms are stored in fp32: its evaluations, without its steps.
struct Fp16Run {
  TinyProject project;
  RunConfig config = read_run_config(project.path("deck.yaml"), {"precision/storage=fp16"});
  LoadedData data = load_data(config, model_config(config.model), Sets::all);
  std::unique_ptr<Engine> engine = load_engine(config.model.folder, update_rule(config), Compute::fp32, false);
  RunFolder folder = new_run_folder(config, project.path("deck.yaml"));
  TrajectoryWriter trajectory{folder.trajectory(), trajectory_header(config, data, *engine, 0), 1.0};
  MetricsFile metrics{folder.metrics(), {}};
  Progress progress{config.output.log_every, config.zo.steps};
  StopSignals signals;
  TimeLeft time_left{RunWork{}};
  LaneLog lanes{config, *engine};
  Job job{std::nullopt, [](const std::string&) {}};
  RunEvaluations evaluations = begin();

  RunEvaluations begin() {
    return {config, data, folder, *engine, &trajectory, metrics, progress, signals, time_left, lanes, job};
  }

  /// theta += c z of this step: a large c takes norms beyond what fp16 holds.
  void update(std::uint32_t t, float c) {
    StepRecord record;
    record.t = t;
    record.c = {c};
    engine->store().append(record);
  }
};

TEST(RunEvaluations, name_a_final_model_that_is_missing_beside_a_best_one_that_is_there) {
  Fp16Run run;
  EXPECT_TRUE(run.evaluations.at(5, false));  // the first evaluation is the best so far
  EXPECT_TRUE(run.evaluations.best_is_written());
  EXPECT_EQ(run.evaluations.models_problem(), "");
  run.update(0, 1e7F);
  run.evaluations.write_final();
  EXPECT_EQ(run.evaluations.models_problem().find((run.folder.path / "final could not be written: tensor ").string()),
            0U)
      << run.evaluations.models_problem();
  EXPECT_EQ(run.evaluations.models_problem().find("/best"), std::string::npos) << run.evaluations.models_problem();
  EXPECT_TRUE(run.evaluations.best_is_written());
}

TEST(RunEvaluations, name_both_models_where_both_are_missing) {
  Fp16Run run;
  run.update(0, 1e7F);
  EXPECT_TRUE(run.evaluations.at(5, false));
  EXPECT_FALSE(run.evaluations.best_is_written());
  const std::string best = run.evaluations.models_problem();
  EXPECT_EQ(best.find((run.folder.path / "best could not be written: tensor ").string()), 0U) << best;
  run.evaluations.write_final();
  const std::string both = run.evaluations.models_problem();
  EXPECT_EQ(both.find(best + "; " + (run.folder.path / "final could not be written: tensor ").string()), 0U) << both;
}

TEST(RunEvaluations, of_a_resumed_run_know_whether_best_was_written) {
  const auto line = [](const std::string& more) {  // better than any that the tiny model gets
    return R"({"step":3,"evaluation":{"set":"dev","accuracy":1.0,"loss":0.0,"examples":12,"confusion":[6,0,0,6]})" +
           more + "}\n";
  };
  for (const auto& [more, written, problem] :
       {std::tuple{R"(,"in_folder_best":true)", true, ""},
        {R"(,"in_folder_best":false)", false, ""},
        {R"(,"in_folder_best":false,"best_problem":"no place for it")", false, "no place for it"},
        {"", false, ""}}) {
    SCOPED_TRACE(more);
    Fp16Run run;
    run.project.write("run/best/config.json", "of this step or an earlier one");
    run.project.write("run/metrics.jsonl", line(more));
    RunEvaluations resumed = run.begin();
    EXPECT_TRUE(resumed.at(5, false));  // which is no better
    EXPECT_EQ(resumed.best().value().step, 3U);
    EXPECT_EQ(resumed.best_is_written(), written);
    EXPECT_EQ(resumed.models_problem(), problem);
  }
}

TEST(RunEvaluations, find_no_best_model_in_what_stands_where_none_is_written) {
  const TinyProject project;
  project.write("run/best/config.json", "of an earlier run");
  const nlohmann::json best =
      project.trained({"zo/learning rate=3e-4", "output/evaluate every=1", "zo/steps=40", "output/write models=never"})
          .at("best");
  ASSERT_GT(best.at("step"), 0);
  EXPECT_EQ(best.at("in_folder_best"), false);
}

}  // namespace
}  // namespace distzo2
