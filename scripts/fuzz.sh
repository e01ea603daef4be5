#!/usr/bin/env bash
# Feeds random bytes to every parser: runs each test module that has a bolero target, for so many seconds a target.
# On a failure, bolero prints the BOLERO_RANDOM_SEED that repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
case $seconds in
  '' | *[!0-9]*) echo "error: FUZZ_SECONDS must be a whole number of seconds, not '$seconds'" >&2; exit 1 ;;
esac
export BOLERO_RANDOM_TEST_TIME_MS=$((seconds * 1000))
# The targets bound their iterations for `make test`; here only the time counts.
export BOLERO_RANDOM_ITERATIONS=1000000000000

files=$(grep --recursive --files-with-matches 'bolero::check!\|[^:]check!()' crates/*/tests --include='*.rs' | sort)
[ -n "$files" ] || { echo "error: no fuzz targets in crates/*/tests" >&2; exit 1; }
for file in $files; do
  package=$(echo "$file" | cut -d/ -f2)
  module=$(basename "$file" .rs)
  echo "fuzzing $package/$module, $seconds s for each target"
  cargo test --release --quiet --package "$package" --test it "$module::"
done
