#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages: there is one for each command, with the options of its --help; the settings of
# verbatim(7) are those of the code and of docs/settings.md; no reader finds a fault in their form.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
man=$VB_ROOT/man

# same NAME FILE FILE: the lists are equal, and not empty
same() {
	[ -s "$2" ] && diff "$2" "$3" >"$tmp/diff"
	verdict "$1" "differ" "$tmp/diff"
}

# What mandoc has of options: "-o FILE", a line each, of the list alone.
page_options() {
	sed -n 's/^\.It Fl //p' "$1" | sed -e 's/ , Fl /\n/g' |
		sed -e 's/^Fl /-/; s/^/-/; s/ Ar / /' | tr a-z A-Z | sort
}

help_options() {
	"$verbatim" "$1" --help | sed '/^examples:/,$d' |
		sed -nE 's/^  (-[^ ]+)(, (-[^ ]+))?( +([A-Z:]+))?  .*/\1 \5\n\3 \5/p' |
		sed -E 's/,//; s/ +$//; /^ *$/d; /^ /d' | tr a-z A-Z | sort
}

"$verbatim" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | sort >"$tmp/commands"
for page in "$man"/verbatim-*.1; do
	page=${page##*/verbatim-}
	echo "${page%.1}"
done | sort >"$tmp/pages"
same "each command has a page" "$tmp/commands" "$tmp/pages"
sed -n 's/^\.It Cm //p' "$man/verbatim.1" | sort >"$tmp/listed"
same "verbatim(1) lists each command" "$tmp/commands" "$tmp/listed"

while read -r command; do
	page=$man/verbatim-$command.1
	[ -e "$page" ] || continue
	page_options "$page" >"$tmp/page"
	help_options "$command" >"$tmp/help"
	diff "$tmp/help" "$tmp/page" >"$tmp/diff"
	verdict "verbatim-$command(1) has the options of --help" "differ" "$tmp/diff"
	"$verbatim" "$command" --help | sed -n '/^examples:/,$s/^  //p' >"$tmp/help"
	sed -n '/^\.Bd -literal/,/^\.Ed/p' "$page" | sed '1d; $d; s/\\e/\\/g' >"$tmp/page"
	same "verbatim-$command(1) has the examples of --help" "$tmp/help" "$tmp/page"
done <"$tmp/commands"
help_options run >"$tmp/help"
grep -qx -- '--FAULT TEXT' "$tmp/help"
verdict "options are found" "--fault is not" "$tmp/help"

sed -n 's/^\.It Ev //p' "$man/verbatim.7" >"$tmp/page"
sed -n 's/^| `\(VERBATIM_[A-Z_]*\)`.*/\1/p' "$VB_ROOT/docs/settings.md" >"$tmp/docs"
sed -n 's/^\t{ "\(VERBATIM_[A-Z_]*\)".*/\1/p' "$VB_ROOT/src/run/process/env.c" >"$tmp/code"
same "verbatim(7) has the settings of docs/settings.md" "$tmp/docs" "$tmp/page"
same "verbatim(7) has the settings of the code" "$tmp/code" "$tmp/page"

for page in "$man"/*.[17]; do
	name=${page##*/}
	sed -n 's/^\.Xr \(verbatim[a-z-]*\) \([17]\).*/\1.\2/p' "$page" | while read -r other; do
		[ -e "$man/$other" ] || echo "there is no $other"
	done >"$tmp/said"
	[ ! -s "$tmp/said" ]
	verdict "$name refers to pages that exist" "it does not" "$tmp/said"
	if ! command -v mandoc >/dev/null; then
		skip "$name is good for mandoc" "there is no mandoc"
	else
		# Pages of the system need not be installed, nor ours.
		mandoc -T lint "$page" 2>&1 | grep -v 'referenced manual not found' >"$tmp/said"
		[ ! -s "$tmp/said" ]
		verdict "$name is good for mandoc" "it complains" "$tmp/said"
	fi
	if ! man --version >/dev/null 2>&1; then
		skip "$name is good for man" "there is no man"
	else
		LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" >"$tmp/text" 2>"$tmp/said"
		[ -s "$tmp/text" ] && [ ! -s "$tmp/said" ]
		verdict "$name is good for man" "it complains" "$tmp/said"
	fi
done
suite_end
