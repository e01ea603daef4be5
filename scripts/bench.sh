#!/usr/bin/env bash
# Measures this tree: announces per second all in, on each store; bytes per peer, cost and instructions of an announce;
# entries per second into the journal, the ledger and activity, on real servers of its own; memory, latency, heartbeats
# and deliveries of the gateway with thousands of WebSocket clients; an idle and an overloaded server.
# Arguments go to `rollcall-bench bench`: --quick, --json FILE, --against NAME=COMMAND, --seconds N; `--help` lists all.
# A run of everything writes docs/benchmarks.md and its pictures; with --only, --server, --against or --json nothing in
# docs changes.
#
# Instruction counts need valgrind and the runner of gungraun; both are installed if missing. Where that is not
# possible, or with ROLLCALL_BENCH_INSTRUCTIONS=no, the rest is measured without them.
set -euo pipefail
cd "$(dirname "$0")/.."

tools="$PWD/target/tools"
counts="$PWD/target/instructions.json"
export PATH="$tools/bin:$PATH"

say() {
  echo "bench: $*" >&2
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_valgrind() {
  command -v valgrind >/dev/null && return
  say "installing valgrind"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get --quiet=2 install --yes --no-install-recommends valgrind >/dev/null \
    || { as_root apt-get --quiet=2 update >/dev/null \
      && as_root env DEBIAN_FRONTEND=noninteractive apt-get --quiet=2 install --yes --no-install-recommends valgrind >/dev/null; }
}

# The runner and the library must be of the same version.
install_gungraun_runner() {
  local version
  version=$(sed -n '/^name = "gungraun"$/{n;s/^version = "\(.*\)"$/\1/p}' Cargo.lock)
  [ "$(gungraun-runner --version 2>/dev/null)" = "gungraun-runner $version" ] && return
  say "installing gungraun-runner $version"
  cargo install --quiet --locked --root "$tools" --version "$version" gungraun-runner
}

count_instructions() {
  say "counting instructions"
  cargo bench --quiet --package bench --bench instructions -- --output-format=json >"$counts"
}

wants_instructions() {
  [ "${ROLLCALL_BENCH_INSTRUCTIONS:-yes}" != no ] || return 1
  is_whole_run "$@"
}

# Whether everything of this tree is measured, so that the figures belong into the documents.
is_whole_run() {
  local argument
  for argument in "$@"; do
    case "$argument" in --help | -h | --against | --against=* | --only | --only=* | --server | --server=* | --json | --json=*) return 1 ;; esac
  done
}

for program in taskset setpriv; do
  command -v "$program" >/dev/null || { say "no $program here: install util-linux"; exit 1; }
done

# Redis, PostgreSQL and MariaDB; does nothing where they are there. What is missing after all, the program names.
./scripts/install-test-needs.sh || say "not everything could be installed"

say "building for speed"
cargo build --quiet --release --package rollcall --package bench
mkdir -p target

instructions=()
if wants_instructions "$@"; then
  if install_valgrind && install_gungraun_runner && count_instructions; then
    instructions=(--instructions "$counts")
  else
    say "no instruction counts this time; the rest follows"
  fi
fi
if is_whole_run "$@"; then
  report="$PWD/target/bench.json"
  ./target/release/rollcall-bench bench "${instructions[@]}" --json "$report" --page docs/benchmarks.md "$@"
  ./scripts/plot-bench.py "$report" docs/pictures/bench.svg docs/pictures/all-in.svg
  say "wrote docs/benchmarks.md, docs/pictures/bench.svg and docs/pictures/all-in.svg"
else
  exec ./target/release/rollcall-bench bench "${instructions[@]}" "$@"
fi
