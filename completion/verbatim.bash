# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Completion of verbatim for bash. Commands and options are read from --help, so they are those of
# the verbatim that is run.
_verbatim() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local verbatim=${COMP_WORDS[0]} command=${COMP_WORDS[1]:-} words
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		words="--help --version $("$verbatim" --help 2>/dev/null |
			sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')"
	elif [ "$before" = --view ] || [[ $before = "=" && ${COMP_WORDS[COMP_CWORD - 2]} = --view ]]; then
		words="auto mount preload none"
	elif [[ $word = -* ]]; then
		words="--help $("$verbatim" "$command" --help 2>/dev/null | sed '/^examples:/,$d' |
			sed -nE 's/^  (-[^ ,]+)(, (-[^ ]+))? .*/\1 \3/p')"
	elif [ "$command" = hub ]; then
		words="status log stop"
	elif [[ $command =~ ^(run|check|trace|record)$ && ( $before = -- || $before != -* ) ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$word" && compgen -f -- "$word")
		return
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _verbatim verbatim
