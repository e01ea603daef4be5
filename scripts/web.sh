#!/usr/bin/env bash
# Builds the dashboard into web/dist, which the server embeds when it is compiled. Does nothing if no source has changed
# since the last build; installs packages only if the lock file has changed.
#
# Without Node it prints what to install. With --optional that is not an error: the server then shows a page that explains
# how to build the dashboard.
set -euo pipefail
cd "$(dirname "$0")/../web"

NODE_MIN=18
is_optional=
for argument in "$@"; do
  case "$argument" in
    --optional) is_optional=yes ;;
    *) echo "usage: scripts/web.sh [--optional]" >&2; exit 2 ;;
  esac
done

# An error, or with --optional a note.
cannot_build() {
  if [ -n "$is_optional" ]; then
    echo "note: the dashboard is not built: $*" >&2
    exit 0
  fi
  echo "error: $*" >&2
  exit 1
}

checksum() { sha256sum | cut -d ' ' -f 1; }

# Every file that the build reads, by name and by content. schema.d.ts is generated from openapi.json.
hash_of_sources() {
  find src public scripts index.html me.html openapi.json package.json package-lock.json tsconfig.json vite.config.ts ../clients/js/src \
    -type f ! -name schema.d.ts -print0 \
    | LC_ALL=C sort --zero-terminated | xargs --null sha256sum | checksum
}

sources=$(hash_of_sources)
is_built=
[ "$(cat dist/.stamp 2>/dev/null)" != "$sources" ] || is_built=yes
lock=$(checksum <package-lock.json)
is_installed=
[ "$(cat node_modules/.stamp 2>/dev/null)" != "$lock" ] || is_installed=yes
# Without --optional the dashboard is about to be checked and tested, which needs the packages as well.
[ -z "$is_built" ] || [ -z "$is_optional$is_installed" ] || exit 0

how="install Node $NODE_MIN or newer with npm (Debian: apt-get install nodejs npm; or https://nodejs.org), then run 'make web'"
command -v node >/dev/null && command -v npm >/dev/null || cannot_build "no Node here: $how"
[ "$(node --print 'process.versions.node.split(".")[0]')" -ge "$NODE_MIN" ] \
  || cannot_build "Node $(node --version) is too old: $how"

if [ -z "$is_installed" ]; then
  echo "installing the packages of web/"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  npm ci --no-progress >"$log" 2>&1 \
    || { cat "$log" >&2; cannot_build "npm could not install the packages of web/: see above, then run 'make web'"; }
  echo "$lock" >node_modules/.stamp
fi

[ -z "$is_built" ] || exit 0
echo "building the dashboard"
npm run --silent build || cannot_build "the dashboard does not build: see above"
echo "$sources" >dist/.stamp
