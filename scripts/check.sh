#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Everything that `make check` does: install what is missing, build, test, count.
#   check.sh [--long] [SUITE ...]      suites: tidy abi unit sim fuzz clients (default: all)
# BUILD and MESON_FLAGS choose the build. The last line is "N passed, N failed, N skipped".
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${MESON_FLAGS:=}"
export BUILD

stop() {
	echo "check: $1"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

scripts/deps.sh check || stop "cannot install what the tests need"
if [ ! -e "$BUILD/build.ninja" ]; then
	# shellcheck disable=SC2086 # MESON_FLAGS is a list
	meson setup "$BUILD" $MESON_FLAGS || stop "meson setup fails"
fi
ninja -C "$BUILD" || stop "the build fails"
scripts/kernel.sh "$BUILD/guest" || echo "check: no kernel for a guest"
exec python3 scripts/check.py "$@"
