#!/usr/bin/env bash
# Measures this tree: announces per second and bytes per peer. Arguments go to `loadgen bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
exec cargo run --release --quiet --package loadgen -- bench "$@"
