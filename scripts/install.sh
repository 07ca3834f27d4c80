#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make install`: builds and installs under PREFIX. Nothing is written before it is known that all
# of it can be: whoever lacks the right gets one line that says so, and what to do.
#   BUILD, PREFIX, DESTDIR   as in the Makefile; MAKE: what runs it
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${PREFIX=/usr/local}" "${DESTDIR:=}" "${MAKE:=make}"

stop() {
	echo "install: $*" >&2
	exit 1
}

case $PREFIX in
/*) ;;
"") stop "PREFIX is empty: say PREFIX=/usr/local, or \$HOME/.local" ;;
*) stop "PREFIX=$PREFIX is not an absolute path: say PREFIX=$PWD/$PREFIX, or \$HOME/.local" ;;
esac
# Meson would take another one for a path from the build folder.
case $DESTDIR in
"" | /*) ;;
*) DESTDIR=$PWD/$DESTDIR ;;
esac
export DESTDIR

# may_write FOLDER: it is there and lets us, or the nearest one above it does.
may_write() {
	folder=$1
	while [ ! -e "$folder" ] && [ ! -h "$folder" ]; do
		folder=$(dirname "$folder")
	done
	[ -d "$folder" ] && [ -w "$folder" ] && [ -x "$folder" ]
}

for part in bin lib/verbatim include/infiniband share; do
	may_write "$DESTDIR$PREFIX/$part" ||
		stop "user $(id -un) may not write to $folder: have root do it (sudo make install" \
			"PREFIX=$PREFIX), or choose a folder of yours (make install" \
			"PREFIX=\$HOME/.local)"
done
owner=
[ ! -e "$BUILD" ] || owner=$(stat -c %u:%g "$BUILD")
for part in . build.ninja .ninja_log meson-private meson-logs; do
	may_write "$BUILD/$part" || { [ -f "$folder" ] && [ -w "$folder" ]; } ||
		stop "user $(id -un) may not write to $folder," \
			"which is $(stat -c %U "$folder")'s," \
			"and so cannot build there: make install" \
			"BUILD=\$HOME/.cache/verbatim PREFIX=$PREFIX"
done

# The build takes in another PREFIX than its last one.
[ ! -e "$BUILD/build.ninja" ] || meson configure "$BUILD" --prefix "$PREFIX"
$MAKE --no-print-directory build BUILD="$BUILD" PREFIX="$PREFIX"
meson install -C "$BUILD" --no-rebuild

# Root installs what somebody built: that one's next build must find nothing of root's.
if [ -n "$owner" ] && [ "$(id -u)" = 0 ]; then
	find "$BUILD" ! -user "${owner%:*}" -exec chown -h "$owner" {} +
fi
