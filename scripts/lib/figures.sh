# SPDX-License-Identifier: BSD-3-Clause
# draw NAME WORDS...: python/NAME.py with a Python that has matplotlib; in its place.
draw() {
  local root python
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  python="$root/.deps/venv/bin/python"
  if [[ ! -x $python ]]; then python=python3; fi
  if ! command -v "$python" >/dev/null || ! "$python" -c 'import matplotlib' 2>/dev/null; then
    echo "$1: matplotlib is not installed; run \"scripts/bootstrap --plots\", which puts it into .deps/venv" >&2
    exit 3
  fi
  exec "$python" "$root/scripts/python/$1.py" "${@:2}"
}
