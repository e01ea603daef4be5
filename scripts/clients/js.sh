#!/usr/bin/env bash
# Builds clients/js in target/tools/clients-js, beside the packages that it and its tests need, and prints where that is.
# Exactly the versions of package-lock.json, by their hashes; does nothing where all of it is there already. The folder of
# the sources stays as it is.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source=$root/clients/js
agents=$root/crates/rollcall/tests/it/presence_clients/agents
home=$root/target/tools/clients-js
mkdir -p "$home"

# Tests run at the same time; the first one builds, the others wait.
exec 9>"$home/building"
flock 9

run() {
  (cd "$home" && "$@") >"$home/build.log" 2>&1 || {
    cat "$home/build.log" >&2
    echo "error: '$*' failed: it takes Node from 18 on with npm (scripts/install-test-needs.sh), and npm's package registry" >&2
    exit 1
  }
}

if ! cmp --silent "$source/package-lock.json" "$home/installed.json"; then
  rm -rf "$home/node_modules" "$home/installed.json" "$home/built"
  cp "$source/package.json" "$source/package-lock.json" "$source/.npmrc" "$home/"
  run npm ci
  cp "$source/package-lock.json" "$home/installed.json"
fi
if ! diff --recursive --brief "$source/src" "$home/built/src" >/dev/null 2>&1 \
  || ! cmp --silent "$source/tsconfig.json" "$home/built/tsconfig.json"; then
  rm -rf "$home/src" "$home/dist" "$home/built"
  cp -r "$source/src" "$source/tsconfig.json" "$home/"
  run node_modules/.bin/tsc
  mkdir "$home/built"
  cp -r "$source/src" "$source/tsconfig.json" "$home/built/"
fi
# Small, and looked at by nobody who is at work already: each process has read its own by then.
rm -rf "$home/tests.new" "$home/agents.new"
cp -r "$source/tests" "$home/tests.new"
cp -r "$agents" "$home/agents.new"
for folder in tests agents; do
  diff --recursive --brief "$home/$folder.new" "$home/$folder" >/dev/null 2>&1 && { rm -rf "$home/$folder.new"; continue; }
  rm -rf "${home:?}/$folder"
  mv "$home/$folder.new" "$home/$folder"
done
echo "$home"
