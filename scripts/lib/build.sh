# SPDX-License-Identifier: BSD-3-Clause
# Configure, build and test a preset; sourced by the scripts that do.

# build_preset PRESET TARGETS OPTIONS...: CMake's own words go to a log, the build's progress is shown. Targets: one or
# several, with blanks between them.
build_preset() {
  local preset=$1 log=$root/build/$1-configure.log targets
  read -ra targets <<<"$2"
  shift 2
  mkdir -p "$root/build"
  if ! (cd "$root" && cmake --preset "$preset" "$@") >"$log" 2>&1; then
    cat "$log" >&2
    die 1 "CMake could not configure the preset $preset"
  fi
  cmake --build "$root/build/$preset" -j "$jobs" --target "${targets[@]}"
}

# run_tests PRESET LABELS OPTIONS...: failed tests show their output; the last lines are ctest's summary, kept in tests.log too.
# Several programs of several threads share the cores here: threads that wait must not spin. One more than the cores,
# since some wait for a time limit.
run_tests() {
  local preset=$1 labels=$2
  shift 2
  OMP_WAIT_POLICY=passive ctest --test-dir "$root/build/$preset" -L "$labels" -j $((jobs + 1)) --output-on-failure \
    --no-tests=error --timeout 600 "$@" | tee "$root/build/$preset/tests.log"
}
