# SPDX-License-Identifier: BSD-3-Clause
# Which packages of packages.txt are missing, and how to get them; sourced by bootstrap.
packages_file=$root/scripts/lib/packages.txt

# packages GROUPS: the lines of these groups (a|b), without comments.
packages() { grep -E "^($1) " "$packages_file"; }

# missing_debian GROUPS: Debian names that dpkg does not know as installed.
missing_debian() {
  local wanted installed
  wanted=$(packages "$1" | awk '{print $2}' | sort -u)
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | awk '$1 == "installed" {print $2}' | sort -u)
  comm -23 <(echo "$wanted") <(echo "$installed")
}

# probe DIR CMAKE_PACKAGES PKG_CONFIG_NAMES HEADERS: writes DIR/found, a line for each that CMake finds here.
probe() {
  rm -rf "$1"
  mkdir -p "$1"
  cmake -G Ninja -S "$root/scripts/lib/probe" -B "$1/build" "-DPROBE_CMAKE=$2" "-DPROBE_PC=$3" "-DPROBE_HEADER=$4" \
    "-DPROBE_OUTPUT=$1/found"
}

can_probe() { command -v cmake && command -v c++ && command -v ninja && command -v pkg-config; } >/dev/null

# missing_any GROUPS: lines of packages.txt whose probe fails, whoever installed the others.
missing_any() {
  local group debian spack module kind name cmake_names= pc_names= header_names= lines missing=
  lines=$(packages "$1")
  while read -r group debian spack module kind; do
    name=${kind#*:}
    case $kind in
      command:*) command -v "$name" >/dev/null || missing+="$group $debian $spack $module $kind"$'\n' ;;
      cmake:*) cmake_names+="$name;" ;;
      pc:*) pc_names+="$name;" ;;
      header:*) header_names+="$name;" ;;
    esac
  done <<<"$lines"
  if ! can_probe; then
    grep -E ' (cmake|pc|header):' <<<"$lines" || true
  else
    probe "$deps/probe" "$cmake_names" "$pc_names" "$header_names" >>"$log" 2>&1 || true
    grep -E ' (cmake|pc|header):' <<<"$lines" | grep -vE " ($(paste -sd'|' "$deps/probe/found" 2>/dev/null))\$" || true
  fi
  printf '%s' "$missing"
}

can_install() { [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; }

apt_install() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get -q -o DPkg::Lock::Timeout=300 update
  apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

# require_packages GROUPS: installs what is missing, or says how to get it and ends with exit code 2.
require_packages() {
  local missing=
  if [[ $1 != *own* ]] && command -v dpkg-query >/dev/null; then
    missing=$(missing_debian "$1")
    if [[ -z $missing ]]; then return; fi
    if can_install; then
      # shellcheck disable=SC2086
      step "Debian packages: $(echo $missing)" apt_install $missing
      return
    fi
  fi
  missing=$(missing_any "$1")
  if [[ -n $missing ]]; then
    print_missing "$missing"
    exit 2
  fi
}

print_missing() {
  {
    printf '%s: these are missing, and without root and apt they cannot be installed here:\n' "$(basename "$0")"
    printf '  %-26s %-18s %s\n' 'Debian package' 'Spack package' 'module'
    awk 'NF {printf "  %-26s %-18s %s\n", $2, $3, $4}' <<<"$1"
    if ! can_probe; then
      printf 'Libraries can be looked for only with a compiler, CMake, Ninja and pkg-config: they are all named here.\n'
    fi
    printf 'Install them, or load their modules and name their prefixes in CMAKE_PREFIX_PATH, then run this again.\n'
    printf 'Nothing was changed.\n'
  } >&2
}
