#!/usr/bin/env bash
# Takes the pictures in docs/pictures from a demo: `make screenshots`. Everything in them is made up, by the demo's seed.
#
# usage: screenshots.sh PROGRAM      the rollcall program, with the dashboard in it
# environment: LIFE_S seconds of life before the pictures (default 150: the plots want some points), CHROMIUM the browser,
#              EVERY_PAGE a folder for pictures of every page at three widths, to be looked at
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:?usage: screenshots.sh PROGRAM}")
life_s=${LIFE_S:-150}
pictures=docs/pictures

# Without fonts for them, Chinese and emoji are boxes; without pngquant, a picture is three times as big.
missing=()
has_font_for() { [ -n "$(fc-list ":lang=$1" 2>/dev/null)" ]; }
command -v fc-list >/dev/null || missing+=(fontconfig)
has_font_for zh-cn || missing+=(fonts-noto-cjk)
# What fontconfig calls the language of emoji.
has_font_for und-zsye || missing+=(fonts-noto-color-emoji)
command -v pngquant >/dev/null || missing+=(pngquant)
if [ ${#missing[@]} -gt 0 ]; then
  echo "error: the pictures would not show what people see: apt-get install ${missing[*]}, then try again" >&2
  exit 1
fi

folder=$(mktemp -d)
demo=
end_demo() {
  [ -z "$demo" ] || { kill "$demo" 2>/dev/null && wait "$demo" || true; }
  demo=
}
trap 'end_demo; rm -rf "$folder"' EXIT
"$program" demo --json --port 0 --tracker-port 0 --pace 2 >"$folder/demo.json" 2>"$folder/log" &
demo=$!
until [ -s "$folder/demo.json" ]; do
  kill -0 "$demo" 2>/dev/null || { cat "$folder/log" >&2; echo "error: the demo did not start" >&2; exit 1; }
  sleep 0.2
done
echo "the demo lives for $life_s s before the pictures are taken"
sleep "$life_s"
(cd web && node scripts/screenshots.mjs "$folder/demo.json" "$folder")
[ -z "${EVERY_PAGE:-}" ] || { every_page=$(realpath -m "$EVERY_PAGE"); (cd web && node scripts/every-page.mjs "$folder/demo.json" "$every_page"); }
end_demo
# As few colours as a picture needs: nobody sees the difference.
pngquant --force --ext .png 128 "$folder"/*.png
mkdir -p "$pictures"
cp "$folder"/*.png "$pictures"
ls -l "$pictures"
