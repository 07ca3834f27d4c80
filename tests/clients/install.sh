#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `make install` by an ordinary user, in a copy of the tree of his own: where he may not write he is
# told so in one line, and nothing has been written; where he may, it is installed and runs.
# (That an installation is complete is tested in tests/abi/install.sh.)
. "$(dirname "$0")/../lib/suite.sh"

if [ -n "$VB_SANITIZE" ]; then
	skip "make install" "it builds a copy of its own, without a sanitizer"
	suite_end
fi

# Root of a user namespace is an ordinary user to everybody outside; what he may not do is seen
# without his capabilities.
source=$tmp/source
mkdir "$source"
tar -C "$VB_ROOT" --exclude=./.git --exclude='./build*' --exclude=./shared -cf - . |
	tar -C "$source" --no-same-owner -xf -
user=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
real_root=
if [ "$(awk '{ print $3 }' /proc/self/uid_map)" = 4294967295 ]; then
	real_root=1
	chown -R 65534:65534 "$source"
else
	user=(setpriv --bounding-set=-all --inh-caps=-all --)
fi
closed=$tmp/closed
mkdir -m 555 "$closed"
export HOME=$source MESON_FLAGS="-Dtests=false -Doptimization=0"
unset DESTDIR BUILD PREFIX

# install NAME ARGS ...: by the user, in his copy; $tmp/out and $tmp/err
install() {
	(cd "$source" && timeout -k 5 300 "${user[@]}" make install "$@") >"$tmp/out" 2>"$tmp/err"
}

# refused NAME PATTERN ARGS ...: with one line, make's own aside, and nothing has been written.
refused() {
	local name=$1 pattern=$2
	shift 2
	find "$source" "$closed" | sort >"$tmp/before"
	if install "$@"; then
		fail "$name" "is installed" "$tmp/out"
		return
	fi
	grep -v '^make' "$tmp/err" >"$tmp/said"
	cat "$tmp/out" >>"$tmp/said"
	find "$source" "$closed" | sort >"$tmp/after"
	if [ "$(wc -l <"$tmp/said")" != 1 ] || ! grep -Eq -- "$pattern" "$tmp/said"; then
		fail "$name" "is not the one line /$pattern/" "$tmp/said"
	elif ! cmp -s "$tmp/before" "$tmp/after"; then
		fail "$name" "something was written" "$tmp/after"
	else
		ok "$name"
	fi
}

who=$("${user[@]}" id -un)
advice='have root do it \(sudo make install PREFIX=.*\), or choose a folder of yours'
refused "a PREFIX that is closed" "^install: user $who may not write to $closed: $advice" \
	PREFIX="$closed"
refused "a PREFIX below one that is closed" \
	"^install: user $who may not write to $closed: $advice" \
	PREFIX="$closed/a/b"
refused "a PREFIX that is a file" "^install: user $who may not write to $source/Makefile: $advice" \
	PREFIX="$source/Makefile"
refused "a PREFIX that is relative" '^install: PREFIX=here is not an absolute path: say PREFIX=/' \
	PREFIX=here
refused "a PREFIX that is empty" '^install: PREFIX is empty: say PREFIX=/' PREFIX=
refused "a DESTDIR that is closed" "^install: user $who may not write to $closed: $advice" \
	DESTDIR="$closed" PREFIX=/usr/local
refused "a BUILD that is closed" \
	"^install: user $who may not write to $closed, .* cannot build there" \
	BUILD="$closed/build" PREFIX="$source/prefix"

# installed NAME PREFIX ARGS ...: it is, and runs from there.
installed() {
	local name=$1 prefix=$2
	shift 2
	if install "$@"; then
		check "$name" "${user[@]}" "$prefix/bin/verbatim" run -- ibv_devinfo -d verbatim0
		# The next one may be another user, and the port is its hub's then.
		"${user[@]}" "$prefix/bin/verbatim" hub stop --force
	else
		fail "$name" "make install fails" "$tmp/out" "$tmp/err"
	fi
}
installed "a PREFIX of one's own" "$source/prefix" PREFIX="$source/prefix"
installed "a DESTDIR of one's own" "$source/stage/usr/local" DESTDIR=stage PREFIX=/usr/local

# What one has built, root installs: nothing of root's is left where the next build is made.
if [ -n "$real_root" ]; then
	mine=("${user[@]}")
	user=()
	installed "root installs what a user has built" "$closed" PREFIX="$closed"
	user=("${mine[@]}")
	left=$(find "$source/build" ! -uid 65534 | head -n 3)
	[ -z "$left" ]
	verdict "root leaves nothing in the user's build folder" "$left"
	installed "the user builds and installs again" "$source/again" PREFIX="$source/again"
	chown -R 0:0 "$source/build"
else
	skip "root installs what a user has built" "we are no root"
	chmod -R a-w "$source/build"
fi
refused "what another has built" \
	"^install: user $who may not write to .*, which is .*'s, and so cannot build there" \
	PREFIX="$source/prefix"
suite_end
