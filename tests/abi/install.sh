#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What `meson install` puts under a prefix works from there, without the build folder.
set -u
tree=$(mktemp -d)
tmp=$tree
trap 'rm -rf "$tree"' EXIT INT TERM
. "$VB_ROOT/tests/lib/tap.sh"

judge() { # judge NAME WHY: ok if WHY is empty
	if [ -z "$2" ]; then
		ok "$1"
	else
		fail "$1" "$2"
	fi
}

why=
DESTDIR=$tree meson install -C "$VB_BUILD" --no-rebuild --quiet || why="meson install fails"
prefix=$(dirname "$(dirname "$(find "$tree" -path '*/bin/verbatim')")")
for file in bin/verbatim lib/verbatim/verbatimd lib/verbatim/libibverbs.so.1 \
	lib/verbatim/libmlx5.so.1 lib/verbatim/librdmacm.so.1 lib/verbatim/libefa.so.1 \
	lib/verbatim/libverbatim_view.so.1 lib/verbatim/rsocket/librspreload.so.1 \
	include/infiniband/verbatim_xrc.h; do
	[ -e "$prefix/$file" ] || why="$why no $file;"
done
judge "an installation is complete" "$why"

why=
for library in libibverbs libmlx5 librdmacm libefa; do
	"$prefix/bin/verbatim" run -- sh -c 'IFS=:; for d in $LD_LIBRARY_PATH; do
		[ -e "$d/'"$library"'.so.1" ] && cd "$d" && pwd -P && break; done' >"$tree/where"
	[ "$(cat "$tree/where")" = "$(cd "$prefix/lib/verbatim" && pwd -P)" ] ||
		why="$why $library from '$(cat "$tree/where")';"
done
judge "an installed verbatim finds its libraries" "$why"

if command -v ibv_devices >/dev/null; then
	why=
	env ${VB_PRELOAD:+"LD_PRELOAD=$VB_PRELOAD"} "$prefix/bin/verbatim" run -- ibv_devices \
		>"$tree/devices" 2>&1 || why="ibv_devices fails"
	grep -q verbatim0 "$tree/devices" || why="$why no verbatim0 in: $(cat "$tree/devices")"
	judge "an installation runs ibv_devices" "$why"
else
	skip "an installation runs ibv_devices" "not installed"
fi
suite_end
