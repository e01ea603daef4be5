#!/usr/bin/env bash
# Installs Schemathesis into a virtual environment of its own, in target/schemathesis, and prints where its program is.
# Exactly the versions of requirements.txt, by their hashes; does nothing where they are there already. To move to newer
# ones, change requirements.in and run pip-compile as the head of requirements.txt says.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
environment=$("$here/../python-environment.sh" "$here/requirements.txt" "${1:-$here/../../target/schemathesis}")
echo "$environment/bin/schemathesis"
