#!/usr/bin/env bash
# Installs what `make test` needs and the machine lacks: real BitTorrent clients, Redis, PostgreSQL, MariaDB, SQLite's
# shell, promtool (in Debian's package of Prometheus), a C compiler, curl, Python with what Schemathesis is installed with
# (the test that needs it does that), Node and Chromium for the client libraries (their packages are installed by the tests
# that need them), network namespaces to lose packets in, a wall clock that tests
# can set (faketime), and what builds and checks the files in deploy/.
# Does nothing, and needs no rights, where all of it is there already.
#
# With --to-build only what building needs: the rest can be installed while that goes on.
set -euo pipefail

# python3-libtorrent belongs to Debian's own Python: tests run it with /usr/bin/python3, never another one on the PATH.
PACKAGES=(
  transmission-cli transmission-daemon aria2 rtorrent qbittorrent-nox python3 python3-venv python3-libtorrent
  redis-server redis-sentinel redis-tools postgresql mariadb-server sqlite3 prometheus build-essential
  curl openssl fakeroot systemd python3-yaml chromium iproute2 iptables faketime
)
case "${1:-}" in
  "") ;;
  --to-build) PACKAGES=(build-essential) ;;
  *) echo "usage: scripts/install-test-needs.sh [--to-build]" >&2; exit 2 ;;
esac
# Any Node from 18 on will do, from wherever it came: other packages of it than Debian's bring npm along and refuse
# Debian's npm beside it.
command -v node >/dev/null || PACKAGES+=(nodejs)
command -v npm >/dev/null || PACKAGES+=(npm)

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
trap 'rm -f "$log"; start_services_again' EXIT

# Tests start their own servers. Debian asks this program whether a package may start its service on the spot, and 101
# means no. Where there is such a policy already, it is the owner's.
policy=/usr/sbin/policy-rc.d
is_policy_ours=
start_no_services() {
  [ ! -e "$policy" ] || return 0
  is_policy_ours=yes
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
}
start_services_again() {
  [ -z "$is_policy_ours" ] || "${as_root[@]}" rm -f "$policy"
}

# RUNLEVEL=1 says the same to packages without a systemd unit.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get --quiet=2 --option DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1
}

start_no_services
echo "installing for the tests: ${missing[*]}"
apt install --yes --no-install-recommends "${missing[@]}" \
  || { apt update && apt install --yes --no-install-recommends "${missing[@]}"; } \
  || { cat "$log" >&2; fail "apt-get could not install: ${missing[*]}"; }
