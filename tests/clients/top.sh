#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Seeing it live: what `verbatim status --json`, `metrics` and `top` say of programs at work agrees
# with what these say of themselves.
. "$(dirname "$0")/../lib/suite.sh"

verbatim=$VB_BUILD/verbatim
insight=$VB_ROOT/tests/lib/insight.py
program=ib_write_bw
export VERBATIM_HUB_IDLE_MS=60000
command -v $program >/dev/null || skip_all "there is no $program"

# has PATTERN FILE
has() {
	grep -Eq -- "$1" "$2"
}

# Both sides work until they are ended: $server, $client.
start() {
	port=$((port + 1))
	"${run[@]}" "$program" -d verbatim0 -x 0 -p $port "$@" >"$tmp/server" 2>&1 &
	server=$!
	port_wait $port $server
	"${run[@]}" "$program" -d verbatim0 -x 0 -p $port "$@" 127.0.0.1 >"$tmp/client" 2>&1 &
	client=$!
}

stop() {
	kill $server $client 2>/dev/null
	wait $server $client 2>/dev/null
}

at_work() {
	"$verbatim" status --json >"$tmp/json" && python3 "$insight" json "$tmp/json" $program 2 \
		>/dev/null
}

# What is asked while top looks has latencies.
measured() {
	"$verbatim" status --json >"$tmp/json" && grep -Eq '"p50_ns": *[1-9]' "$tmp/json"
}

grown() {
	"$verbatim" status --json >"$tmp/later" &&
		python3 "$insight" grown "$tmp/json" "$tmp/later" $program >/dev/null
}

# --- nobody is there ---

check "status --json without a hub" "$verbatim" status --json
python3 -c 'import json, sys; assert json.load(sys.stdin)["hub"] is None' <"$tmp/output"
verdict "... is JSON" "it is not" "$tmp/output"
check "metrics without a hub" "$verbatim" metrics
has '^verbatim_up 0$' "$tmp/output"
verdict "... say so" "they do not" "$tmp/output"
check "top -b without a hub" "$verbatim" top -b -d 0.1
has 'no hub is running' "$tmp/output"
verdict "... says so" "it does not" "$tmp/output"
for wrong in "top -n 0" "top -n x" "top -d 0" "top -s NOTHING" "top x" "metrics x" \
	"metrics --listen"; do
	# shellcheck disable=SC2086 # words
	ends 2 "verbatim $wrong is refused" "$verbatim" $wrong && ok "verbatim $wrong is refused"
done
ends 1 "metrics --listen nowhere" "$verbatim" metrics --listen 9401 &&
	has 'ADDRESS:PORT' "$tmp/output"
verdict "metrics --listen without an address" "does not say what it takes" "$tmp/output"

# --- two at work, by rings and by UDP ---

for link in "" udp; do
	link_use "$link"
	over=${link:+ ($link)}
	start -D 6 -s 4096
	await at_work
	check "status --json" python3 "$insight" json "$tmp/json" $program 2
	"$verbatim" metrics >"$tmp/metrics"
	check "metrics" python3 "$insight" metrics "$tmp/metrics" $program 2
	"$verbatim" top --once -d 2 >"$tmp/top" 2>&1
	wait $server $client
	rate=$(awk '$1 == 4096 { print $4 }' "$tmp/client")
	check "top's rates are those that $program says" \
		python3 "$insight" rates "$tmp/top" $program "${rate:-0}"
	sed 's/^/# /' "$tmp/top"

	# One request at a time: its latency is all that there is.
	program=ib_read_lat
	start -D 3600 -s 4096
	# One that will look in a minute: measuring goes on, however late the other one is.
	"$verbatim" top -b -d 60 >"$tmp/slow" 2>&1 &
	watchers=$!
	"$verbatim" top -b -n 1000 -d 0.3 >"$tmp/top" 2>&1 &
	watchers="$watchers $!"
	await measured
	await grown
	"$verbatim" metrics >"$tmp/metrics"
	check "latencies are those of all requests, one after the other" \
		python3 "$insight" latency "$tmp/json" "$tmp/later" "$tmp/top" $program
	has "^verbatim_qp_latency_seconds\{.*\"$program\".*=\"0.99\"\} [0-9.]+$" "$tmp/metrics"
	verdict "... and are a summary among the metrics" "they are not" "$tmp/metrics"
	# shellcheck disable=SC2086 # two
	kill $watchers
	# shellcheck disable=SC2086
	wait $watchers 2>/dev/null
	stop
	program=ib_write_bw
done
link_use ""
over=

# --- the screen, and HTTP ---

start --run_infinitely -s 65536
await at_work
check "top in a terminal of 80 columns" python3 "$insight" screen "$verbatim" $program 2
grep '^#' "$tmp/output"
"$verbatim" metrics --listen 127.0.0.1:19401 2>"$tmp/listen" &
listener=$!
port_wait 19401 $listener
python3 - >"$tmp/metrics" <<'EOF'
import urllib.request
with urllib.request.urlopen("http://127.0.0.1:19401/metrics") as answer:
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers
    print(answer.read().decode(), end="")
EOF
verdict "metrics by HTTP" "they do not come" "$tmp/listen"
check "... are the same" python3 "$insight" metrics "$tmp/metrics" $program 2
python3 - >"$tmp/output" 2>&1 <<'EOF'
import urllib.error
import urllib.request
try:
    urllib.request.urlopen("http://127.0.0.1:19401/else")
    raise SystemExit("it is there")
except urllib.error.HTTPError as error:
    assert error.code == 404, error
EOF
verdict "... and nothing else is there" "it is" "$tmp/output"
kill $listener
wait $listener 2>/dev/null

# --- one that does not answer ---

kill -STOP $server
"$verbatim" top --once -d 0.1 >"$tmp/top" 2>&1
has ' 1 silent' "$tmp/top"
verdict "a process that is stopped is silent" "it is not said" "$tmp/top"
kill -CONT $server
stop
suite_end
