# SPDX-License-Identifier: BSD-3-Clause
# Shared by the scripts; sourced, never run. Sets root (the project), deps (what bootstrap builds) and jobs.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=$root/.deps
jobs=${DISTZO2_JOBS:-$(nproc)}

die() {  # die CODE MESSAGE...: one message, then out
  local code=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$code"
}

# step NAME COMMAND...: one line of progress with the time the command took; its output goes to the file $log.
step() {
  local name=$1 start=$SECONDS code
  shift
  printf '[%4d s] %s ... ' "$SECONDS" "$name"
  printf '\n=== %s: %s\n' "$(date '+%F %T')" "$name" >>"$log"
  set +e
  (set -e; "$@") >>"$log" 2>&1 </dev/null
  code=$?
  set -e
  if ((code == 0)); then
    printf '%d s\n' $((SECONDS - start))
  else
    printf 'failed (exit code %d)\n' "$code"
    tail -n 25 "$log" >&2
    die 1 "the step \"$name\" failed; the whole log is $log"
  fi
}

# stage NAME COMMAND...: the output is shown, between two lines that name the stage and its time.
stage() {
  local name=$1 start=$SECONDS
  shift
  printf '\n==> %s\n' "$name"
  "$@"
  printf '<== %s: %d s\n' "$name" $((SECONDS - start))
}

find_nvcc() {  # prints nvcc's path, or fails
  command -v nvcc || { [[ -x ${CUDA_HOME:-/usr/local/cuda}/bin/nvcc ]] && echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; }
}

# find_python MODULE...: sets python to ${DISTZO2_PYTHON:-python3}, which must have these modules.
find_python() {
  local module
  python=${DISTZO2_PYTHON:-python3}
  command -v "$python" >/dev/null || die 3 "there is no $python; set DISTZO2_PYTHON to a Python that has: $*"
  for module in "$@"; do
    "$python" -c "import $module" 2>/dev/null ||
      die 3 "$python has no module $module; set DISTZO2_PYTHON to a Python that has: $*"
  done
}

# need_smollm2: the built program, the model and SST-2 are there, or out with what to do.
need_smollm2() {
  [[ -x $root/build/release/bin/distzo2 ]] || die 3 "build/release/bin/distzo2 is not built; scripts/test builds it"
  [[ -d $root/models/smollm2-135m-instruct ]] || die 3 "models/smollm2-135m-instruct is missing; scripts/get_smollm2 makes it"
  [[ -f ${SST2:-}/train.tsv && -f ${SST2:-}/validation.tsv ]] ||
    die 3 "set SST2 to the folder of SST-2: train.tsv and validation.tsv with the columns sentence and label"
}
