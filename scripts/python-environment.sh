#!/usr/bin/env bash
# Makes a virtual environment with exactly the packages of a requirements.txt, by their hashes, and prints where it is:
#   python-environment.sh REQUIREMENTS FOLDER
# Does nothing where it is there already.
set -euo pipefail

requirements=$1
mkdir -p "$2"
home=$(cd "$2" && pwd)

# Tests run at the same time; the first one installs, the others wait.
exec 9>"$home/installing"
flock 9

if ! cmp --silent "$requirements" "$home/installed.txt"; then
  rm -rf "$home/environment" "$home/installed.txt"
  # Debian's own Python, whatever other one is on the PATH: the hashes are of what it needs.
  {
    /usr/bin/python3 -m venv "$home/environment" &&
      "$home/environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --requirement "$requirements"
  } >"$home/install.log" 2>&1 || {
    cat "$home/install.log" >&2
    echo "error: Python packages could not be installed: it takes python3-venv (scripts/install-test-needs.sh) and pip's package index" >&2
    exit 1
  }
  cp "$requirements" "$home/installed.txt"
fi
echo "$home/environment"
