#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The package `ibverbs` of PyPI: its own tests.
. "$(dirname "$0")/../lib/registries.sh"
wheels ibverbs==2026.10.22 numpy==2.2.6 \
	pytest==8.4.2 pluggy==1.6.0 iniconfig==2.1.0 packaging==25.0 pygments==2.19.2
sdist ibverbs==2026.10.22
. "$(dirname "$0")/../lib/suite.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"

# What needs a GPU or a second device skips itself.
own_tests() {
	local line name result
	COLUMNS=200 timeout -k 5 "$limit_s" "${on_client[@]}" "${run[@]}" "$python" -m pytest \
		-p no:cacheprovider -v --tb=short "$sources/tests" >"$tmp/output" 2>&1
	[ $? = 0 ] && grep -Eq '= [1-9][0-9]* passed' "$tmp/output"
	verdict "$1its tests" "they do not pass" "$tmp/output"
	while read -r name result line; do
		case $result in
		PASSED) ok "$1${name##*/}" ;;
		SKIPPED) skip "$1${name##*/}" "${line% \[*}" ;;
		*) fail "$1${name##*/}" "$result" ;;
		esac
	done < <(grep '^[^ ]*::[^ ]* [A-Z]' "$tmp/output")
}

own_tests ""
if user_become; then
	export HOME=/nonexistent
	own_tests "an ordinary user, "
else
	skip "an ordinary user" "nobody cannot read $VB_BUILD"
fi
suite_end
