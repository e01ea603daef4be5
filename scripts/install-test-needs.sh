#!/usr/bin/env bash
# Installs what `make test` needs and the machine lacks: real BitTorrent clients, SQLite's shell, a C compiler.
# Does nothing, and needs no rights, where all of it is there already.
set -euo pipefail

# python3-libtorrent belongs to Debian's own Python: tests run it with /usr/bin/python3, never another one on the PATH.
PACKAGES=(transmission-cli transmission-daemon aria2 python3 python3-libtorrent sqlite3 build-essential)

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

fail() {
  echo "error: $*" >&2
  exit 1
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  fail "no apt-get here: install these yourself, then run the tests with 'cargo test --workspace': ${PACKAGES[*]}"
fi

missing=()
for package in "${PACKAGES[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "neither root nor sudo: as root, run apt-get install ${missing[*]}"
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# RUNLEVEL=1 keeps Debian from starting transmission-daemon on the spot: tests start their own.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get --quiet=2 --option DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1
}

echo "installing for the tests: ${missing[*]}"
apt install --yes --no-install-recommends "${missing[@]}" \
  || { apt update && apt install --yes --no-install-recommends "${missing[@]}"; } \
  || { cat "$log" >&2; fail "apt-get could not install: ${missing[*]}"; }
