# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034  # venv_python is for the script that sources this
# Sourced by scripts that need Python packages: a virtual environment of their own under the ignored .deps folder.

# scratch_venv NAME FOLDER: sets venv_folder and venv_python, making FOLDER/venv-NAME where it is not whole.
scratch_venv() {
  venv_folder="$2/venv-$1"
  venv_python="$venv_folder/bin/python"
  if "$venv_python" -m pip --version >/dev/null 2>&1; then
    return 0
  fi
  mkdir -p "$2"
  if ! python3 -m venv --clear "$venv_folder" >"$venv_folder.log" 2>&1; then
    cat "$venv_folder.log" >&2
    echo "python3 -m venv failed; on Debian the package python3-venv provides it" >&2
    return 3
  fi
}

# scratch_pip ARGUMENTS: pip install into it, quiet unless it fails; the log stays beside the environment.
scratch_pip() {
  if ! "$venv_python" -m pip install --disable-pip-version-check "$@" >"$venv_folder.log" 2>&1; then
    tail -n 20 "$venv_folder.log" >&2
    echo "pip install $* failed; the whole log is $venv_folder.log" >&2
    return 3
  fi
}
