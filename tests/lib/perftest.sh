# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# perftest's programs as tests; source it after suite.sh. The suite sets $gid and $address.

# A row of results: a size, then numbers. (A run in which nothing moved prints 0.00 everywhere.)
perftest_row='^ *[0-9]+ +[0-9]+ +.*[1-9]'

# perf NAME PROGRAM ARGS ...: server and client with the same arguments.
perf() {
	local name=$1 expect=$perftest_row
	shift
	pair "$name" "$@" -d verbatim0 -F -x "$gid" -p PORT -- \
		"$@" -d verbatim0 -F -x "$gid" -p PORT "$address"
}
