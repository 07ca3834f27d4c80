#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Everything that `make check` does: install what is missing, build, test, count.
#   check.sh [--long] [SUITE ...]      the suites are those below (default: all)
# BUILD and MESON_FLAGS choose the build. Whatever happens, the last line of stdout and stderr
# together is "N passed, N failed, N skipped", and the exit status is 0 or 1.
set -eu
exec 2>&1
cd "$(dirname "$0")/.."
: "${BUILD:=build}" "${VB_CHECK_EVERY_S:=8}"
export BUILD VB_CHECK_EVERY_S
suites="tidy abi runner unit sim fuzz check clients registries bare"

stop() {
	echo "check: $1"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

# How far apt is, every few seconds; there may be no python3 for check_progress.py yet.
install_watch() {
	seconds=$(date +%s)
	while sleep "$VB_CHECK_EVERY_S" >/dev/null && kill -0 $$ 2>/dev/null; do
		awk -v seconds=$(($(date +%s) - seconds)) '
			/^deps.sh: installing/ { packages = "at least " NF - 2 }
			/ newly installed, / { packages = $3 }
			/^Get:/ { got++ }
			/^Unpacking / { unpacked++ }
			/^Setting up / { ready++ }
			NF { last = $0 }
			END {
				printf "... installing, %d s: of %s packages ", seconds, packages
				printf "%d fetched, %d unpacked, %d ready: %s\n",
					got, unpacked, ready, substr(last, 1, 120)
			}' "$1"
	done
}

long=
wanted=
for word; do
	case " --long $suites " in
	" $word "*) long=--long ;;
	*" $word "*) wanted="$wanted $word" ;;
	*) stop "no such suite: $word (there are: $suites)" ;;
	esac
done

mkdir -p "$BUILD/check"
log=$BUILD/check/install.log
install_watch "$log" &
watcher=$!
status=0
scripts/deps.sh check >"$log" 2>&1 || status=$?
kill $watcher 2>/dev/null || true
if [ $status != 0 ]; then
	tail -n 30 "$log"
	stop "cannot install what the tests need (exit status $status; see $log)"
fi
grep '^deps\.sh: ' "$log" || true
# shellcheck disable=SC2086 # lists
python3 scripts/check.py $long ${wanted:-$suites} || status=$?
[ $status -le 1 ] || stop "the runner ended with exit status $status"
exit $status
