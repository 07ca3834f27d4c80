#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that merely link the libraries: they start, list the device, and fail as they should
# where what they need is not there.
. "$(dirname "$0")/../lib/suite.sh"

# loads NAME PATTERN CMD ...: ends well and prints it
loads() {
	local name=$1 pattern=$2
	shift 2
	if ! command -v "$1" >/dev/null; then
		skip "$name" "no $1"
		return
	fi
	ends 0 "$name" "${run[@]}" "$@" || return
	if ! grep -Eq -- "$pattern" "$tmp/output"; then
		fail "$name" "does not print /$pattern/" "$tmp/output"
	elif grep -Eq 'undefined symbol|symbol lookup error|cannot open shared' "$tmp/output"; then
		fail "$name" "a symbol or library is missing" "$tmp/output"
	else
		ok "$name"
	fi
}

loads "fio" 'fio-3' fio --version
loads "fio rdma engine" 'hostname' fio --enghelp=rdma
loads "qperf" 'qperf' qperf --version
loads "fi_info" 'libfabric: 1' fi_info --version
loads "fi_info lists" 'provider: verbs|provider: ' fi_info
loads "ucx_info" 'Version 1' ucx_info -v
if [ "${VB_SANITIZE:-}" = thread ]; then
	skip "ucx_info devices" "UCX crashes under ThreadSanitizer, with any library"
else
	loads "ucx_info devices" 'Memory domain|Transport' ucx_info -d
fi
loads "ibv_devices" 'verbatim0' ibv_devices
loads "python" 'verbatim0' /usr/bin/python3 -c \
	'import pyverbs.device as d; print([x.name.decode() for x in d.get_device_list()])'
loads "python imports all" 'all' /usr/bin/python3 -c 'import pyverbs.qp, pyverbs.cmid, pyverbs.srq
import pyverbs.providers.mlx5.mlx5dv, pyverbs.providers.efa.efadv; print("all")'

# Nobody listens: who asks to connect is told so, and ends.
for program in "rping -c -a 127.0.0.1 -C 1" "ucmatose -s 127.0.0.1" "udaddy -s 127.0.0.1" \
	"rstream -s 127.0.0.1"; do
	name=${program%% *}
	command -v "$name" >/dev/null || continue
	# shellcheck disable=SC2086 # a command line
	timeout -k 5 "$limit_s" "${run[@]}" $program >"$tmp/output" 2>&1
	rc=$?
	case $rc in
	0 | 124 | 13[0-9]) fail "$name fails cleanly" "$(status_say $rc)" "$tmp/output" ;;
	*) ok "$name fails cleanly" ;;
	esac
done
suite_end
