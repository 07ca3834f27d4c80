#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion, by each shell itself: all commands, all options of each command, and values.
. "$(dirname "$0")/../lib/suite.sh"

export PATH=$VB_BUILD:$PATH HOME=$tmp XDG_CONFIG_HOME=$tmp
folder=$VB_ROOT/completion

# What the shell proposes for the line, a word each.
by_bash() {
	# shellcheck disable=SC2016 # for the inner shell
	bash --norc -c '. "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _verbatim
		printf "%s\n" "${COMPREPLY[@]}"' bash "$folder/verbatim.bash" "$1"
}

# zsh completes only at a terminal. Here its words for completion print what they would propose.
by_zsh() {
	# shellcheck disable=SC2016 # for the inner shell
	zsh -f -c 'words=(${=2}); [[ $2 != *" " ]] || words+=(""); CURRENT=$#words
		_files() { print files }; _command_names() { print commands }
		compadd() { shift; printf "%s\n" $@ | grep -e "^${words[CURRENT]}"; }
		. "$1"' zsh "$folder/_verbatim" "$1"
}

by_fish() {
	# shellcheck disable=SC2016 # for the inner shell
	fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$folder/verbatim.fish" "$1"
}

# proposes SHELL LINE WORD ...: just these
proposes() {
	local shell=$1 line=$2
	shift 2
	printf '%s\n' "$@" | sort >"$tmp/want"
	"by_$shell" "$line" 2>"$tmp/err" | cut -f1 | sort >"$tmp/got"
	diff "$tmp/want" "$tmp/got" >"$tmp/diff" && [ ! -s "$tmp/err" ]
	verdict "$shell: '$line'" "proposes others" "$tmp/diff" "$tmp/err"
}

mapfile -t commands < <(sed -n 's/^\.It Cm //p' "$VB_ROOT/man/verbatim.1")
for shell in bash zsh fish; do
	if ! command -v $shell >/dev/null; then
		skip "$shell" "it is not installed"
		continue
	fi
	proposes $shell "verbatim " "${commands[@]}" --help --version
	proposes $shell "verbatim tr" trace
	proposes $shell "verbatim hub " status log stop
	proposes $shell "verbatim run --view " auto mount preload none
	# A program, of which there are many.
	"by_$shell" "verbatim run -- setpri" >"$tmp/got" 2>"$tmp/err"
	grep -Eq '^(setpriv|commands)\b' "$tmp/got"
	verdict "$shell: a program behind run --" "is not proposed" "$tmp/got" "$tmp/err"
	for command in "${commands[@]}"; do
		# The manual pages have the options of --help (manuals.sh).
		mapfile -t options < <(sed -n 's/^\.It Fl //p' "$VB_ROOT/man/verbatim-$command.1" |
			sed 's/ , Fl /\n/g' | sed 's/^Fl /-/; s/^/-/; s/ Ar .*//' | grep -e '^--')
		proposes $shell "verbatim $command --" --help "${options[@]}"
	done
done
suite_end
