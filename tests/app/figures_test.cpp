// SPDX-License-Identifier: BSD-3-Clause
// The scripts that draw write what the output's name says. Needs matplotlib; says so where it is not there.
#include <gtest/gtest.h>

#include <iostream>

#include "test_paths.hpp"
#include "tests/support/tiny_project.hpp"

namespace distzo2 {
namespace {

namespace fs = std::filesystem;

/// The script's own words in place of the program's.
ProgramResult script(const TinyProject& project, const std::string& name, std::vector<std::string> arguments) {
  const ProgramOptions options{.wrapper = {"sh", "-c", "script=$0; shift; exec \"$script\" \"$@\"",
                                           (test_paths::sources / "scripts" / name).string()}};
  return project.run(arguments, options);
}

/// Whether a script said that it cannot draw here; then so does the test.
bool cannot_draw(const ProgramResult& result) {
  const bool so = result.exit_code == 3 && result.err.find("matplotlib is not installed") != std::string::npos;
  if (so) std::cout << "left out: " << result.err;
  return so;
}

TEST(Figures, are_png_pdf_or_svg_by_the_name) {
  const TinyProject project;
  const nlohmann::json summary = project.trained({"memory/staging=always", "output/trace file=trace.json",
                                                  "zo/learning rate=3e-4", "zo/steps=40", "output/evaluate every=1"});
  const ProgramResult first = script(project, "plot_run", {"run"});
  if (cannot_draw(first)) return;
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(text_of_file(project.path("run/curves.png")).find("PNG"), 1U);
  struct Case {
    std::string name, input, title;
    std::vector<std::string> more;
  };
  const std::vector<std::string> with_program{"--program", test_paths::program};
  for (const Case& c :
       {Case{"plot_run", "run", "run", {}}, Case{"plot_timeline", "trace.json", "trace.json, steps ", {}},
        Case{"plot_trajectory", "run/trajectory.zoj", "run: 40 steps in ", with_program}}) {
    SCOPED_TRACE(c.name);
    const auto draw = [&](const std::string& file) {
      return script(project, c.name, with({c.input, "-o", file}, c.more));
    };
    for (const auto& [file, begin] : {std::pair{"a.png", "\x89PNG"}, {"a.pdf", "%PDF-"}, {"a.svg", "<?xml"}}) {
      const ProgramResult drawn = draw(file);
      EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
      EXPECT_EQ(text_of_file(project.path(file)).find(begin), 0U) << file;
    }
    const std::string svg = text_of_file(project.path("a.svg"));  // it has each text as a comment
    EXPECT_NE(svg.find("<!-- " + c.title), std::string::npos);
    EXPECT_EQ(draw("a.svg").exit_code, 0);
    EXPECT_EQ(text_of_file(project.path("a.svg")), svg);
    if (c.name == "plot_run") {
      ASSERT_GT(summary.at("best").at("step"), 0);
      EXPECT_NE(svg.find("<!-- best/: step " + summary.at("best").at("step").dump() + " -->"), std::string::npos);
    }
    const ProgramResult refused = draw("a.jpeg");
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_NE(refused.err.find("a.jpeg: expected a name that ends in .png, .pdf or .svg"), std::string::npos)
        << refused.err;
    EXPECT_FALSE(fs::exists(project.path("a.jpeg")));
  }
}

TEST(Figures, show_no_best_model_that_was_not_written_and_no_score_that_was_not_measured) {
  const TinyProject project;
  const nlohmann::json summary =
      project.trained({"zo/learning rate=3e-4", "zo/steps=40", "output/evaluate every=1", "output/write models=never"});
  ASSERT_GT(summary.at("best").at("step"), 0);
  const ProgramResult drawn = script(project, "plot_run", {"run", "-o", "a.svg"});
  if (cannot_draw(drawn)) return;
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(text_of_file(project.path("a.svg")).find("<!-- best/"), std::string::npos);

  project.trained({"data/dev=", "data/test=", "output/folder=unevaluated"});
  const ProgramResult loss = script(project, "plot_run", {"unevaluated", "-o", "b.svg"});
  EXPECT_EQ(loss.exit_code, 0) << loss.err;
  EXPECT_NE(text_of_file(project.path("b.svg")).find("<!-- unevaluated"), std::string::npos);
}

}  // namespace
}  // namespace distzo2
