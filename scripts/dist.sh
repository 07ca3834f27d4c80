#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make dist`: the source tarball of the last commit. The same commit gives the same octets: the
# times in it are the commit's, and gzip notes neither name nor time.
#   BUILD   the folder that it goes to
set -eu
cd "$(dirname "$0")/.."
: "${BUILD:=build}"

version=$(sed -n "s/^  version: '\(.*\)',\$/\1/p" meson.build)
newest=$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)
if [ "$newest" != "$version" ]; then
	echo "dist: CHANGELOG.md begins with $newest, meson.build says $version" >&2
	exit 1
fi
if ! git diff --quiet HEAD; then
	echo "dist: commit your changes first, for the tarball is made of the last commit" >&2
	exit 1
fi
mkdir -p "$BUILD"
name=verbatim-$version
tar=$BUILD/$name.tar
# Not by a pipe, which would hide that git fails. The umask is git's default, whatever is set here.
git -c tar.umask=0002 archive --format=tar --prefix="$name/" -o "$tar" HEAD
gzip -n -9 -f "$tar"
sha256sum "$tar.gz"
