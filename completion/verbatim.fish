# SPDX-License-Identifier: BSD-2-Clause
# Completion of verbatim for fish. Commands and options are read from --help, so they are those of
# the verbatim that is run.
function __verbatim_words
    set -l line (commandline -opc)
    set -l word (commandline -ct)
    if test (count $line) -eq 1
        printf '%s\n' --help --version
        $line[1] --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p'
    else if test "$line[-1]" = --view
        printf '%s\n' auto mount preload none
    else if string match -q -- '-*' "$word"
        echo --help
        $line[1] $line[2] --help 2>/dev/null | sed '/^examples:/,$d' |
            sed -nE 's/^  (-[^ ,]+)(, (-[^ ]+))? .*/\1\n\3/p' | sed '/^$/d'
    else if test "$line[2]" = hub
        printf '%s\n' status log stop
    else
        if contains -- "$line[2]" run check trace record
            __fish_complete_command
        end
        __fish_complete_path "$word"
    end
end
complete -c verbatim -f -a '(__verbatim_words)'
