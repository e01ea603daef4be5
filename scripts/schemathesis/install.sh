#!/usr/bin/env bash
# Installs Schemathesis into a virtual environment of its own, in target/schemathesis, and prints where its program is.
# Exactly the versions of requirements.txt, by their hashes; does nothing where they are there already. To move to newer
# ones, change requirements.in and run pip-compile as the head of requirements.txt says.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${1:-$here/../../target/schemathesis}
mkdir -p "$home"
home=$(cd "$home" && pwd)

# Tests run at the same time; the first one installs, the others wait.
exec 9>"$home/installing"
flock 9

if ! cmp --silent "$here/requirements.txt" "$home/installed.txt"; then
  rm -rf "$home/environment" "$home/installed.txt"
  # Debian's own Python, whatever other one is on the PATH: the hashes are of what it needs.
  {
    /usr/bin/python3 -m venv "$home/environment" &&
      "$home/environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --requirement "$here/requirements.txt"
  } >"$home/install.log" 2>&1 || {
    cat "$home/install.log" >&2
    echo "error: Schemathesis could not be installed: it takes python3-venv (scripts/install-test-needs.sh) and pip's package index" >&2
    exit 1
  }
  cp "$here/requirements.txt" "$home/installed.txt"
fi
echo "$home/environment/bin/schemathesis"
