# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=dash
# What a suite in shell says: a line of TAP for each test, and the plan as its last line.
#
#   ok NAME, fail NAME WHY [FILE ...], skip NAME WHY     one result; FILEs are shown
#   CMD; verdict NAME WHY [FILE ...]                     ok if CMD succeeded, else fail; a $(...)
#                                                        in its words would be that CMD
#   suite_end                                            the last line of every suite
#
# The suite sets $tmp first, a folder of its own.
failures=0
results=$tmp/results	# every result once more: what a subshell says counts, too
over=			# what results say of the link, if it is not the one chosen by itself

result() {
	echo "$1"
	echo "$1" >>"$results"
}

ok() {
	result "ok - $1$over"
}

skip() {
	result "ok - $1$over # SKIP $2"
}

fail() {
	local file
	failures=$((failures + 1))
	result "not ok - $1$over: $2"
	shift 2
	for file; do
		echo "# --- ${file##*/}"
		tail -n 40 "$file" | sed 's/^/#     /'
	done
}

verdict() {
	if [ $? = 0 ]; then
		ok "$1"
	else
		fail "$@"
	fi
}

suite_end() {
	[ -e "$results" ] && echo "1..$(wc -l <"$results")"
	exit $((failures > 0))
}
