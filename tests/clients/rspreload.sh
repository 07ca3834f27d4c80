#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Socket programs that know nothing of RDMA, on rsockets (librspreload): what they do and say is
# what they do and say by TCP.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/netns.sh"

rsockets=("${run[@]}" "$VB_BUILD/verbatim" run --rsockets --)
at=127.0.0.1		# where servers listen
few_segments=150	# of TCP's, for the kernel alone, while an application is at work

# begin CMD ...: a server, in the background. Its output is $tmp/server.
begin() {
	"${on_server[@]}" timeout -k 5 "$limit_s" "${run_server[@]}" "$@" >"$tmp/server" 2>&1 &
	server=$!
}

# client CMD ...: to its end.
client() {
	"${on_client[@]}" timeout -k 5 "$limit_s" "${run_client[@]}" "$@" 2>&1
}

# server_end [CMD ...]: makes the server end, by a signal or by that command.
server_end() {
	if [ $# -gt 0 ]; then
		"$@"
	else
		kill "$server"
	fi
	wait "$server"
}

# --- applications. Each says what came of it; PORT is a port of its own. ---

# A URL's host.
host_of() {
	if [ "$at" = "${at#*:}" ]; then
		echo "$at"
	else
		echo "[$at]"
	fi
}

redis_says() {
	local cli=(redis-cli -h "$at" -p "$port")
	begin "$tmp/redis-server" --port "$port" --bind "$at" --save "" --dir "$work" \
		--protected-mode no
	await eval 'client "${cli[@]}" ping | grep -q PONG' || return
	client "${cli[@]}" set greeting hello
	client "${cli[@]}" -x set big <"$work/html/big" >/dev/null
	client "${cli[@]}" get big | sha256sum
	client "${cli[@]}" eval 'for i = 1, 9999 do redis.call("rpush", "list", i) end' 0
	client "${cli[@]}" lrange list 0 -1 | sha256sum
	seq 5000 | sed 's/.*/INCRBY sum &/' | client "${cli[@]}" | tail -n 1
	client redis-benchmark -h "$at" -p "$port" -n 5000 -c 20 -P 4 -d 1000 --csv \
		-t set,get,incr,lrange_100 | cut -d , -f 1
	client "${cli[@]}" get greeting
	server_end client "${cli[@]}" shutdown nosave
	echo "status $?"
}

memcached_says() {
	local at_port
	at_port="--servers=$(host_of):$port"
	begin memcached -u "$(id -un)" -l "$at" -p "$port" -U 0 -t 2 -m 64 -I 8m
	await client memcping "$at_port" >/dev/null || return
	client memccp "$at_port" "$work/html/small" "$work/html/middle"
	client memccat "$at_port" small middle | sha256sum
	for test in set get mget; do
		client memcslap "$at_port" --concurrency=4 --execute-number=1000 --test=$test |
			grep -cE '(keys|records) by'
	done
	client memcstat "$at_port" | grep -E 'curr_items|cmd_set'
	server_end
	echo "status $?"
}

# nginx as it is, with workers, needs fork support.
nginx_says() {
	local url
	url=http://$(host_of):$port
	cat >"$work/nginx.conf" <<-END
		worker_processes 2;
		pid $work/nginx.pid;
		daemon off;
		${1:-}
		events { worker_connections 256; }
		http {
			sendfile on;
			access_log off;
			# Which connection reaches the usual bound, and is closed, would be chance.
			keepalive_requests 100000;
			client_body_temp_path $work/body;
			proxy_temp_path $work/proxy;
			fastcgi_temp_path $work/fastcgi;
			uwsgi_temp_path $work/uwsgi;
			scgi_temp_path $work/scgi;
			server { listen $(host_of):$port; root $work/html; }
		}
	END
	begin nginx -c "$work/nginx.conf" -e stderr -p "$work" -g "user root;"
	await eval 'client curl -sf "$url/small" >/dev/null' || return
	client curl -sS "$url/small"
	client curl -sS "$url/big" | sha256sum
	client curl -sS -r 1000-99999 "$url/big" "$url/small" | sha256sum
	client curl -sS -o /dev/null -w '%{http_code}\n' "$url/none"
	for options in "-n 200 -c 4" "-k -n 2000 -c 8"; do
		# shellcheck disable=SC2086 # words of a command
		client ab -q $options "$url/middle" |
			grep -E '^(Complete|Failed|Keep-Alive|HTML transferred)'
	done
	server_end
	echo "status $?"
}

nginx_alone_says() {
	nginx_says "master_process off;"
}

# What arrives at an end is what the other has sent, by its own count.
iperf3_counts() {
	python3 -c '
import json, sys
end = json.load(sys.stdin)["end"]
print([end[s]["bytes"] > 0 for s in ("sum_sent", "sum_received") if s in end], "received")'
}

iperf3_says() {
	local options
	begin iperf3 -s -p "$port" --forceflush
	await grep -q listening "$tmp/server" || return
	for options in "-n 200M" "-R -n 200M" "-P 4 -n 200M" "-R -P 4 -n 200M" "--bidir -t 1" \
		"-u -l 1000 -b 50M -n 2M"; do
		echo "$options"
		# shellcheck disable=SC2086 # words of a command
		client iperf3 -c "$at" -p "$port" -J $options | iperf3_counts
	done
	server_end
}

socat_says() {
	local family=4
	[ "$at" = "${at#*:}" ] || family=6
	begin socat -u "TCP$family-LISTEN:$port,bind=$(host_of)" "CREATE:$work/got"
	await eval 'client socat -u "FILE:$work/html/big" "TCP$family:$(host_of):$port" \
		>"$tmp/refused"; [ ! -s "$tmp/refused" ]'
	wait "$server"
	echo "status $?"
	sha256sum <"$work/got"
}

nc_says() {
	begin nc -l "$at" "$port"
	await eval 'client nc -N "$at" "$port" <"$work/html/big"'
	wait "$server"
	echo "status $?"
	sha256sum <"$tmp/server"
}

# Both ends in one process.
python_says() {
	client python3 "$VB_ROOT/tests/lib/sockets.py" "$at" "$@"
}

# As well. Both ends say what they say at any time.
stdio_says() {
	client "$VB_BUILD/tests/rdmacm/sockets" "$at" stdio | sort
}

jumps_says() {
	client "$VB_BUILD/tests/rdmacm/sockets" "$at" jumps | sort
}

signals_says() {
	client "$VB_BUILD/tests/rdmacm/sockets" "$at" signals
}

# --- what they say ---

segments() {
	awk '$1 == "Tcp:" && $2 ~ /^[0-9]+$/ { print $12 }' /proc/net/snmp
}

# says WAY APPLICATION: to the file $tmp/WAY.APPLICATION.
says() {
	local way=$1 application=$2
	port=$((port + 1))
	server=
	rm -f "$work/got"
	"${application}_says" ${words:+"$words"} >"$tmp/$way.$application$words" 2>&1
	[ -z "$server" ] || gone "$server" || server_end 2>/dev/null
	run_server=() run_client=()
}

# It says the same as by TCP.
says_the_same() {
	run_server=("${rsockets[@]}") run_client=("${rsockets[@]}")
	before=$(segments)
	says rsockets "$application"
	sent=$(($(segments) - before))
	diff "$by_tcp" "$by_rsockets" >"$tmp/diff"
}

# same APPLICATION ...: whatever each says by TCP it says by rsockets.
same() {
	local application before sent name by_tcp by_rsockets
	for application; do
		by_tcp=$tmp/tcp.$application$words by_rsockets=$tmp/rsockets.$application$words
		name="$PREFIX: $application${words:+ $words}"
		if [ ! -e "$by_tcp" ]; then
			(at=127.0.0.1 on_server=() on_client=() run_server=() run_client=()
				says tcp "$application")
		fi
		if ! says_the_same; then
			fail "$name" "it says something else than by TCP" "$tmp/diff" "$tmp/server"
		elif [ -z "${RDMAV_FORK_SAFE:-}" ] && ((sent > few_segments)); then
			fail "$name" "the kernel has sent $sent segments" "$by_rsockets"
		else
			ok "$name"
		fi
	done
}

# Servers that fork leave connections to their children.
same_with_forks() {
	local -x RDMAV_FORK_SAFE=1
	local PREFIX="$PREFIX, fork support" words=
	same nginx
	words=fork
	same python
}

work=$tmp/work words=
mkdir -m 777 "$work" "$work/html"
head -c 6000000 /dev/urandom >"$work/html/big"
head -c 100000 /dev/urandom >"$work/html/middle"
echo "a small file" >"$work/html/small"
chmod -R a+rX "$work/html"
# The server of redis is the program that checks its files, by another name.
ln -s "$(type -p redis-check-rdb)" "$tmp/redis-server"
all=(stdio jumps signals)
for program in redis-check-rdb:redis memcslap:memcached iperf3:iperf3 nginx:nginx_alone \
	socat:socat nc:nc python3:python; do
	if [ -n "$(type -t "${program%:*}")" ]; then
		all+=("${program#*:}")
	else
		skip "${program#*:}" "there is no ${program%:*} here"
	fi
done

for link in "" udp; do
	[ -z "$link" ] || link_use $link
	for at in 127.0.0.1 ::1; do
		PREFIX="one host $at"
		same "${all[@]}"
		same_with_forks
	done
done
unset VERBATIM_LINK
over=

# As rsocket(7) says it.
PREFIX="by hand" at=127.0.0.1
preload=${VB_PRELOAD:+$VB_PRELOAD:}$VB_BUILD/lib/rsocket/librspreload.so
rsockets=("${run[@]}" env "LD_PRELOAD=$preload")
same nc
rsockets=("${run[@]}" "$VB_BUILD/verbatim" run --rsockets --)

if hosts_make 1500; then
	# What has both its ends in one process has been at work above.
	hosts_each same $(printf '%s\n' "${all[@]}" | grep -vE 'stdio|jumps|signals|python')
else
	skip "two hosts" "this system lets us make no veth"
fi
on_server=() on_client=() at=127.0.0.1

if user_become; then
	PREFIX="an ordinary user"
	chmod -R a+rwX "$work"
	same iperf3 redis nginx_alone socat stdio jumps signals python
else
	skip "an ordinary user" "he cannot read $VB_BUILD"
fi
suite_end
