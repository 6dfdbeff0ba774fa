# Sourced by the scripts in tools/: one line per step with its time, everything else in a log, whose end is shown when
# a step fails.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
log=$root/build/log/$(basename "$0").log
mkdir -p "$(dirname "$log")"
: >"$log"

# step TITLE COMMAND...: runs the command quietly. On a terminal the last line of its output shows that it moves.
step() {
  local title=$1 start=$SECONDS pid rc
  shift
  printf '\n== %s: %s\n' "$title" "$*" >>"$log"
  if [ -t 1 ]; then
    "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
      printf '\r\033[K%s (%d s) %s' "$title" $((SECONDS - start)) "$(tail -n 1 "$log" | cut -c1-60 | tr -d '\r')"
      sleep 0.5
    done
    printf '\r\033[K'
    wait "$pid" && rc=0 || rc=$?
  else
    "$@" >>"$log" 2>&1 </dev/null && rc=0 || rc=$?
  fi
  if [ "$rc" != 0 ]; then
    printf '%s: failed after %d s. The end of %s:\n' "$title" $((SECONDS - start)) "$log" >&2
    tail -n 40 "$log" >&2
    exit "$rc"
  fi
  printf '%s: done (%d s)\n' "$title" $((SECONDS - start))
}

# What a build takes: compilers, CMake, and libraries that are all Debian and Ubuntu packages.
packages="g++ cmake ninja-build pkg-config ccache libhwy-dev libpcre2-dev nlohmann-json3-dev libspdlog-dev libcli11-dev
          libgtest-dev libgmock-dev liburing-dev libxxhash-dev"

install_packages() {
  local missing=() sudo=""
  command -v dpkg-query >/dev/null || {
    echo "This script installs Debian or Ubuntu packages; elsewhere install the equivalents of:" $packages >&2
    return 1
  }
  for package in $packages; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return 0
  [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# build PRESET [TARGET]: configures and builds, on all cores but never with more jobs than memory holds.
build() {
  local jobs=$(($(awk '/MemAvailable/{print $2}' /proc/meminfo) / 1500000))
  [ "$jobs" -gt "$(nproc)" ] && jobs=$(nproc)
  [ "$jobs" -lt 1 ] && jobs=1
  (cd "$root" && cmake --preset "$1" && cmake --build "build/$1" -j "$jobs" ${2:+--target "$2"})
}
