#!/usr/bin/env bash
# Installs what clients/python needs, in target/tools/clients-python, and prints where its Python is. Exactly the versions
# of requirements.txt, by their hashes; does nothing where they are there already.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
environment=$("$root/scripts/python-environment.sh" "$root/clients/python/requirements.txt" "$root/target/tools/clients-python")
echo "$environment/bin/python"
