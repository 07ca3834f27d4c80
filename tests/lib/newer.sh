# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Programs of newer distributions, as their packages have them, run here: unpacked in a folder, with
# their own C library and its loader. Our libraries are those built here, in front of theirs. To be
# sourced before suite.sh, since the mirror is outside the suite's network namespace.
#
#   newer_get SUITE PACKAGE ...  into $newer/SUITE, with what they depend on; kept between runs.
#                                What went wrong is in $newer/SUITE.why, which is else empty
#   newer_use SUITE              sets $on_newer, which leads a command line of that distribution's,
#                                $bin (its programs) and $libraries (its folder of libraries)
#   newer_pyverbs SUITE          after that: rdma-core's own tests lie in $tmp/tests, and $on_python
#                                leads their command line
: "${VB_ROOT:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
newer=${VB_BUILD:-$VB_ROOT/build}/newer
newer_keys=/usr/share/keyrings/debian-archive-keyring.gpg

# newer_apt SUITE WORDS ...: apt-get as on a machine of that suite where nothing is installed.
newer_apt() {
	local at=$newer/$1
	shift
	apt-get -q -o Dir="$at/apt" -o Dir::State::status=/dev/null -o Debug::NoLocking=1 \
		-o APT::Sandbox::User= -o APT::Install-Recommends=0 \
		-o Acquire::Languages=none \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Dir::Etc::parts=none -o Dir::Etc::sourceparts=none \
		-o Dir::Etc::trustedparts=none -o APT::Update::Error-Mode=any \
		-o Acquire::http::Timeout=20 -o Acquire::Retries=1 "$@"
}

newer_get() {
	local suite=$1 at=$newer/$1 deb
	shift
	[ "$*" != "$(cat "$at/whole" 2>/dev/null)" ] || return 0
	mkdir -p "$newer"
	: >"$at.why"
	if [ ! -e "$newer_keys" ] || ! command -v apt-get dpkg-deb >/dev/null; then
		echo "this is no Debian" >"$at.why"
		return 1
	fi
	rm -rf "$at"
	mkdir -p "$at/root" "$at/apt/etc/apt" "$at/apt/var/lib/apt/lists/partial" \
		"$at/apt/var/cache/apt/archives/partial"
	echo "deb [signed-by=$newer_keys] http://deb.debian.org/debian $suite main" \
		>"$at/apt/etc/apt/sources.list"
	if ! newer_apt "$suite" update >"$at/log" 2>&1 ||
		! newer_apt "$suite" install -y --download-only "$@" >>"$at/log" 2>&1; then
		echo "no packages of $suite: $(grep -m 1 ^E: "$at/log")" >"$at.why"
		return 1
	fi
	for deb in "$at"/apt/var/cache/apt/archives/*.deb; do
		dpkg-deb -x "$deb" "$at/root" || return 1
	done
	rm -rf "$at/apt"
	echo "$*" >"$at/whole"
}

newer_use() {
	bin=$newer/$1/root/usr/bin
	libraries=$(dirname "$(ls "$newer/$1"/root/usr/lib/*/libibverbs.so.1)")
	loader=$(ls "$libraries"/ld-linux*.so.*)
	on_newer=("$loader" --library-path "$VB_BUILD/lib:$libraries")
}

newer_pyverbs() {
	local shipped=$newer/$1/root/usr/share/doc/rdma-core/tests
	mkdir "$tmp/tests" "$tmp/bin" "$tmp/lib"
	cp "$shipped"/* "$tmp/tests/"
	gunzip "$tmp"/tests/*.gz
	# As tests/lib/pyverbs.sh has it: what a kernel says that knows of no device.
	printf '#!/bin/sh\necho "[]"\n' >"$tmp/bin/rdma"
	chmod a+x "$tmp/bin/rdma"
	ln -s "$VB_BUILD"/lib/*.so* "$tmp/lib/"
	on_python=(env "PATH=$tmp/bin:$PATH" "PYTHONHOME=$newer/$1/root/usr"
		"PYTHONPATH=$newer/$1/root/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
		"$loader" --library-path "$tmp/lib:$libraries" "$bin/python3")
}
