#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs of newer distributions start and work: ibverbs-utils, rdmacm-utils, perftest and those of
# libfabric of Debian 13 and of unstable, with the C library that they were built for. They ask for
# symbol versions that the distribution here does not have. docs/verbs.md has a table of what this
# suite says.
. "$(dirname "$0")/../lib/newer.sh"

suites=(trixie sid)
newest=65	# the rdma-core that docs/verbs.md knows; unstable goes on
sid_is_known=
if [ -z "${VB_HOST_A:-}" ] && [ -z "${VB_SANITIZE:-}" ]; then
	for suite in "${suites[@]}"; do
		newer_get "$suite" ibverbs-utils rdmacm-utils perftest ibverbs-providers \
			libfabric-bin \
			$([ "$suite" != sid ] || echo rdma-core python3-pyverbs python3)
	done
fi
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/cm.sh"
[ -z "$VB_SANITIZE" ] ||
	skip_all "a sanitizer's library needs the C library that it was built for"

# Each program and library of the packages finds each symbol that it needs; in ours, of those that
# are ours.
resolves() {
	local file out bad="" count=0
	for file in "$bin"/* "$libraries"/lib{mlx4,hns,mana,rdmacm,efa,mlx5}.so.?; do
		[ -e "$file" ] && [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ] || continue
		out=$(LD_TRACE_LOADED_OBJECTS=1 LD_WARN=yes LD_BIND_NOW=yes \
			"${on_newer[@]}" "$file" 2>&1)
		case $out in *libibverbs*) ;; *) continue ;; esac
		count=$((count + 1))
		out=$(grep -E "undefined symbol|not found|not defined" <<<"$out") && bad="$bad
${file##*/}: $out"
	done
	echo "$bad" >"$tmp/unresolved"
	[ -z "$bad" ] && [ "$count" -ge 20 ]
	verdict "$1" "$count programs and libraries" "$tmp/unresolved"
}

# versions FILE: the names that a library has, with their versions.
versions() {
	nm -D --defined-only "$1" | awk '/@/ { sub("@+", "@", $3); print $3 }' | sort
}

# Each name of theirs is in ours, at the same version.
names() {
	local library
	for library in libefa.so.1 libmlx5.so.1 librdmacm.so.1; do
		comm -23 <(versions "$libraries/$library") <(versions "$VB_BUILD/lib/$library")
		versions "$libraries/$library" | grep -q @ || echo "nothing is in $library"
	done >"$tmp/lacking"
	[ ! -s "$tmp/lacking" ]
	verdict "$1" "some are not" "$tmp/lacking"
}

# program NAME ARGUMENT ...: one that runs alone.
program() {
	local name=$1
	shift
	check "$name" "${run[@]}" "${on_newer[@]}" "$bin/$1" "${@:2}"
}

for suite in "${suites[@]}"; do
	if [ -s "$newer/$suite.why" ] || [ ! -e "$newer/$suite/whole" ]; then
		skip "programs of $suite" "$(cat "$newer/$suite.why")"
		continue
	fi
	newer_use "$suite"
	version=$(readlink "$libraries/libibverbs.so.1" | cut -d . -f 5-) # libibverbs.so.1.18.65.0
	name="$suite, rdma-core $version"
	if [ "${version%%.*}" -gt $newest ]; then
		skip "$name" "newer than rdma-core $newest"
		continue
	fi
	[ "$suite" != sid ] || sid_is_known=1
	resolves "$name: all symbols are found"
	names "$name: all names of its libraries are there"
	program "$name: ibv_devices" ibv_devices
	program "$name: ibv_devinfo" ibv_devinfo -v
	# Unstable asks for the speed of all lanes, too.
	speed='effective_speed:\s+100\.0'
	[ "$suite" != trixie ] || speed='active_speed:\s+25\.0 Gbps'
	grep -Eq "$speed" "$tmp/output"
	verdict "$name: ibv_devinfo knows the port's speed" "not /$speed/" "$tmp/output"
	for which in rc uc ud srq xsrq; do
		twins "$name: ibv_${which}_pingpong" \
			"${on_newer[@]}" "$bin/ibv_${which}_pingpong" -g 0 -p PORT
	done
	for which in send_bw write_lat read_bw atomic_lat; do
		twins "$name: ib_$which" "${on_newer[@]}" "$bin/ib_$which" -x 0 -n 100 -p PORT
	done
	PREFIX=$name
	cm "rping" "${on_newer[@]}" "$bin/rping" -s -a "$at" -p PORT -C 10 -V -- \
		"${on_newer[@]}" "$bin/rping" -c -a "$at" -p PORT -C 10 -V
	cm "ucmatose" "${on_newer[@]}" "$bin/ucmatose" -b "$at" -p PORT -- \
		"${on_newer[@]}" "$bin/ucmatose" -s "$at" -p PORT
	cm "rstream" "${on_newer[@]}" "$bin/rstream" -b "$at" -p PORT -C 10 -S 1000 -- \
		"${on_newer[@]}" "$bin/rstream" -s "$at" -p PORT -C 10 -S 1000
	export VERBATIM_PERSONA=efa FI_EFA_ENABLE_SHM_TRANSFER=0
	for which in send_bw send_lat read_bw read_lat write_bw write_lat; do
		twins "$name: ib_$which by SRD" \
			"${on_newer[@]}" "$bin/ib_$which" -x 0 -c SRD -s 4096 -n 100 -p PORT
	done
	for which in rdm dgram; do
		pair "$name: fi_pingpong -p efa -e $which" \
			"${on_newer[@]}" "$bin/fi_pingpong" -B PORT -p efa -e $which -c -- \
			"${on_newer[@]}" "$bin/fi_pingpong" -P PORT -p efa -e $which -c "$address"
	done
	unset VERBATIM_PERSONA FI_EFA_ENABLE_SHM_TRANSFER
done

# rdma-core's own tests of what these releases added, and of what they use all along.
module() {
	timeout -k 5 "$limit_s" env ${2:+"VERBATIM_PERSONA=$2"} "${run[@]}" "${on_python[@]}" \
		"$VB_ROOT/tests/lib/pyverbs_run.py" "$tmp" "test_$1" "$name: " "$lacking" \
		--dev verbatim0 --port 1 --gid 0 >"$tmp/module" 2>"$tmp/errors"
	rc=$?
	tee -a "$results" <"$tmp/module"
	if [ $rc != 0 ]; then
		fail "$name: test_$1" "$(status_say $rc)" "$tmp/errors"
	elif grep -q "^not ok" "$tmp/module"; then
		failures=$((failures + 1))
		sed 's/^/#     /' "$tmp/errors"
	fi
}

lacking="CC_DMA_BOUNCE|renderD128|huge pages|DM dmabuf export|CQE 128B compression"

if [ -n "$sid_is_known" ]; then
	newer_pyverbs sid
	for which in addr atomic buf cq cq_events cqex dmah mr odp parent_domain pd qp qpex \
		relaxed_ordering shared_pd srq tag_matching; do
		module $which
	done
	for which in ooo_qp dc cq; do
		module mlx5_$which connectx7
	done
	for which in efadv efa_srd; do
		module $which efa
	done
fi
suite_end
