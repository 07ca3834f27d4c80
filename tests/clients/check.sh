#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# `verbatim check` raises no false alarms: perftest, ibverbs-utils, UCX, Open MPI and pyverbs under
# it, whose flaws are in check.supp, each with its reason. And what the command says and returns.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/mpi.sh"

if [ -n "$VB_SANITIZE" ]; then
	skip_all "a sanitizer has reports of its own; other suites run these programs under it"
fi
verbatim=$VB_BUILD/verbatim
known=$VB_ROOT/tests/clients/check.supp
checked=("$verbatim" check --error-exitcode=99 "--suppressions=$known" --)
run=("${checked[@]}")
run_server=("${run[@]}") run_client=("${run[@]}")

# --- the command ---

flawed=$VB_BUILD/tests/check/recv_cleared
ends 0 "without a status for flaws it is the program's" "$verbatim" check -- "$flawed" &&
	ok "without a status for flaws it is the program's"
ends 7 "the status for flaws" "$verbatim" check --error-exitcode 7 -- "$flawed" &&
	ok "the status for flaws"
grep -q 'recv-buffer-written at recv_cleared.c:[0-9]* in main' "$tmp/output"
verdict "the report has name, line and function" "it has not" "$tmp/output"
ends 3 "the program's own status" "$verbatim" check --error-exitcode 7 -- sh -c 'exit 3' &&
	ok "the program's own status"
ends 137 "a program that is killed" "$verbatim" check -- sh -c 'kill -9 $$' &&
	ok "a program that is killed"
"$verbatim" check --gen-suppressions --output "$tmp/supp" -- "$flawed"
ends 0 "what is suppressed is no flaw" \
	"$verbatim" check --error-exitcode 7 --suppressions "$tmp/supp" -- "$flawed" &&
	grep -q '0 flaws, 1 suppressed' "$tmp/output"
verdict "what is suppressed is no flaw" "it is reported" "$tmp/output"
echo "no-such-flaw *" >"$tmp/supp"
ends 125 "a report that cannot be written" \
	"$verbatim" check --output "$tmp/no/x" -- touch "$tmp/has_run" && [ ! -e "$tmp/has_run" ] &&
	ok "a report that cannot be written is refused before the program runs"
ends 125 "a suppression of no flaw" "$verbatim" check --suppressions "$tmp/supp" -- true &&
	ok "a suppression of no flaw"
printf "%s\r\n" "recv-buffer-written 'recv_cleared.c:* in main' '*wr_id*' # known" >"$tmp/supp"
ends 0 "a suppression with the other quotes" \
	"$verbatim" check --error-exitcode 7 --suppressions "$tmp/supp" -- "$flawed" &&
	ok "a suppression with the other quotes"
echo "recv-buffer-written recv_cleared.c:* in main" >"$tmp/supp"
ends 125 "a suppression without quotes" "$verbatim" check --suppressions "$tmp/supp" -- true &&
	ok "a suppression without quotes"
ends 125 "an unknown option" "$verbatim" check --jsn -- true && ok "an unknown option"
ends 127 "no such program" "$verbatim" check -- /no/such/program && ok "no such program"
"$verbatim" check --json --output "$tmp/json" -- "$flawed"
python3 -c 'import json, sys
flaw, = json.load(open(sys.argv[1]))["flaws"]
assert flaw["flaw"] == "recv-buffer-written" and flaw["count"] == 1' "$tmp/json" 2>"$tmp/errors"
verdict "JSON" "it is not as expected" "$tmp/errors"

# --- no false alarms ---

if command -v ibv_rc_pingpong >/dev/null; then
	for test in "ibv_rc_pingpong" "ibv_rc_pingpong -e" ibv_uc_pingpong ibv_ud_pingpong \
		ibv_srq_pingpong; do
		# shellcheck disable=SC2086 # a command line
		twins "$test" $test -p PORT -g 0 -n 100
	done
else
	skip "ibverbs-utils" "no ibv_rc_pingpong"
fi
if command -v ib_send_bw >/dev/null; then
	for test in "ib_send_bw -n 300" "ib_send_bw -n 300 -b" "ib_send_bw -n 300 -e" \
		"ib_send_bw -n 300 -c UD" "ib_send_bw -n 300 -r 128 --use-srq" \
		"ib_send_lat -n 100 -s 4096" "ib_write_bw -n 300" "ib_write_bw -n 300 -b -q 2" \
		"ib_write_lat -n 100 -s 4096" "ib_read_bw -n 100" "ib_atomic_bw -n 100"; do
		# shellcheck disable=SC2086 # a command line
		twins "$test" $test -p PORT -x 0
	done
else
	skip "perftest" "no ib_send_bw"
fi

shipped=/usr/share/doc/rdma-core/tests
if [ -d $shipped ]; then
	cp -r $shipped "$tmp/tests"
	gunzip -qf "$tmp"/tests/*.gz 2>/dev/null
	for module in cq cq_events cqex qpex mr pd addr; do
		ends 0 "pyverbs test_$module" "${run[@]}" "$VB_ROOT/tests/lib/pyverbs_run.py" \
			"$tmp" "test_$module" "" "" --dev verbatim0 --port 1 --gid 0 &&
			ok "pyverbs test_$module"
	done
else
	skip "pyverbs" "no $shipped"
fi

if ! command -v ucx_perftest >/dev/null; then
	skip "UCX" "no ucx_perftest"
else
	run=("${checked[@]}" "$verbatim" run --dev --)
	run_server=("${run[@]}") run_client=("${run[@]}")
	export UCX_NET_DEVICES=verbatim0:1 UCX_WARN_UNUSED_ENV_VARS=n UCX_TLS
	for UCX_TLS in rc_v ud_v; do
		for test in "tag_lat -s 8" "tag_bw -s 5000" "tag_bw -s 1000000" \
			"stream_bw -s 5000" "ucp_am_bw -s 40000" "ucp_put_bw -s 100000"; do
			# shellcheck disable=SC2086 # options
			twins "ucx_perftest $UCX_TLS $test" ucx_perftest -p PORT -n 20 -w 5 -t $test
		done
	done
	if command -v mpirun.openmpi >/dev/null; then
		export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx
		for UCX_TLS in rc_v ud_v; do
			UCX_TLS=$UCX_TLS,self mpi_run "Open MPI by $UCX_TLS" 3 10000
		done
	else
		skip "Open MPI" "no mpirun.openmpi"
	fi
fi
suite_end
