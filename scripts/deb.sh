#!/usr/bin/env bash
# Builds the Debian package with nothing but dpkg-deb.
#
#   scripts/deb.sh [--binary target/release/rollcall] [--out target/debian] [--quick]
#
# --quick leaves out the compression, for tests. The last line printed is the path of the package. With
# SOURCE_DATE_EPOCH set, or in a git checkout, the same sources make the same package, byte for byte.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "error: $*" >&2
  exit 1
}

binary=target/release/rollcall
out=target/debian
compression=(-Zxz)
while [ $# -gt 0 ]; do
  case "$1" in
    --binary) binary=${2:?--binary needs a path}; shift 2 ;;
    --out) out=${2:?--out needs a folder}; shift 2 ;;
    --quick) compression=(-Znone); shift ;;
    *) fail "$1 is not understood: see the top of $0" ;;
  esac
done
for tool in dpkg-deb dpkg-shlibdeps strip gzip; do
  command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install build-essential"
done
[ -x "$binary" ] || fail "there is no $binary: build it first (cargo build --release --package rollcall), or run make deb"

version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || fail "Cargo.toml has no version in [workspace.package]"
revision=1
architecture=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
install_file() { install -D --mode="$1" "$2" "$root/$3"; }

# The program, and what it knows about itself.
install_file 755 "$binary" usr/bin/rollcall
strip --strip-unneeded --remove-section=.comment "$root/usr/bin/rollcall"
settings() { env -i "$root/usr/bin/rollcall" "$@"; }
settings config print >"$work/rollcall.toml"
install_file 640 "$work/rollcall.toml" etc/rollcall/rollcall.toml
install_file 640 deploy/debian/rollcall.env etc/rollcall/rollcall.env
install_file 644 deploy/systemd/rollcall.service usr/lib/systemd/system/rollcall.service
install_file 644 deploy/systemd/rollcall@.service usr/lib/systemd/system/rollcall@.service
install_file 644 deploy/debian/sysusers.conf usr/lib/sysusers.d/rollcall.conf

# The manual: the help of every command.
as_roff() { sed -e 's/\\/\\e/g' -e "s/^\([.']\)/\\\\\&\1/" -e 's/-/\\-/g'; }
{
  printf '.TH ROLLCALL 1 "%s" "rollcall %s"\n' "$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%d)" "$version"
  printf '.SH NAME\nrollcall \\- a private BitTorrent tracker with exact accounts\n.SH DESCRIPTION\n.nf\n'
  settings --help | as_roff
  commands=$(settings --help | sed -n '/^Commands:/,/^$/ s/^  \([a-z-]*\) .*/\1/p' | grep -v '^help$')
  for command in $commands; do
    printf '.fi\n.SH "ROLLCALL %s"\n.nf\n' "$(printf %s "$command" | tr '[:lower:]' '[:upper:]')"
    settings "$command" --help | as_roff
  done
  printf '.fi\n.SH FILES\n.nf\n/etc/rollcall/rollcall.toml\n/etc/rollcall/rollcall.env\n/var/lib/rollcall\n'
} | gzip -9n >"$work/rollcall.1.gz"
install_file 644 "$work/rollcall.1.gz" usr/share/man/man1/rollcall.1.gz

install_file 644 deploy/debian/copyright usr/share/doc/rollcall/copyright
gzip -9n <CHANGELOG.md >"$work/changelog.gz"
install_file 644 "$work/changelog.gz" usr/share/doc/rollcall/changelog.gz
maintainer='The Rollcall developers <rollcall@packages.invalid>'
{
  printf 'rollcall (%s-%s) unstable; urgency=medium\n\n' "$version" "$revision"
  printf '  * Version %s: see changelog.gz.\n\n' "$version"
  printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" '+%a, %d %b %Y %T +0000')"
} | gzip -9n >"$work/changelog.Debian.gz"
install_file 644 "$work/changelog.Debian.gz" usr/share/doc/rollcall/changelog.Debian.gz

# What dpkg wants to know. dpkg-shlibdeps finds out which versions of the C library will do.
mkdir -p "$work/debian" "$root/DEBIAN"
printf 'Source: rollcall\n\nPackage: rollcall\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/rollcall" 2>"$work/complaint" | sed -n 's/^shlibs:Depends=//p') \
  || fail "dpkg-shlibdeps: $(cat "$work/complaint")"
[ -n "$libraries" ] || fail "dpkg-shlibdeps does not tell which libraries $binary needs"
kib=$(du --summarize --apparent-size --block-size=1024 --exclude=DEBIAN "$root" | cut -f1)
cat >"$root/DEBIAN/control" <<CONTROL
Package: rollcall
Version: $version-$revision
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $kib
Depends: $libraries, adduser, init-system-helpers (>= 1.54)
Recommends: ca-certificates
Suggests: redis-server, postgresql
Section: net
Priority: optional
Description: private BitTorrent tracker with exact accounts
 Rollcall hears announces over HTTP, HTTPS and UDP, lets in who may announce, and
 keeps exact accounts of what everybody moved. It needs nothing else to run, and
 works with Redis and PostgreSQL or MariaDB when one machine is not enough.
CONTROL
(cd "$root" && find etc -type f -printf '/%p\n' | LC_ALL=C sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find usr etc -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/control" "$root/DEBIAN/conffiles" "$root/DEBIAN/md5sums"
for script in postinst prerm postrm; do
  install --mode=755 "deploy/debian/$script" "$root/DEBIAN/$script"
done
find "$root" -type d -exec chmod 755 {} +
chmod 750 "$root/etc/rollcall"
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$out"
package=$out/rollcall_$version-${revision}_$architecture.deb
dpkg-deb --root-owner-group "${compression[@]}" --build "$root" "$package" >/dev/null
echo "$package"
