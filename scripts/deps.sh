#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian or Ubuntu packages that are missing. Arguments: the tiers wanted.
#   build  what compiles verbatim        demo  the programs of `make demo`
#   test   what `make check` runs        fuzz  what `make fuzz` needs
#   bench  what `make bench` compares with, and draws with
# Says nothing and needs no root where nothing is missing.
set -eu

build="gcc libc6-dev make meson ninja-build pkg-config libibverbs-dev librdmacm-dev libisal-dev
	libcmocka-dev"
demo="perftest iproute2"
test="$build $demo python3 binutils ibverbs-utils rdmacm-utils python3-pyverbs
	rdma-core qperf fio libfabric-bin libfabric1 ucx-utils openmpi-bin python3-mpi4py
	dapl2-utils tshark nftables iperf3 util-linux procps valgrind qemu-system-x86
	busybox-static kmod"
fuzz="$build clang llvm"
bench="$build $demo python3 ucx-utils libfabric-bin libfabric1 iperf3 gnuplot-nox util-linux"

wanted=
for tier in "${@:-build}"; do
	case $tier in
	build) wanted="$wanted $build" ;;
	demo) wanted="$wanted $demo" ;;
	test) wanted="$wanted $test" ;;
	fuzz) wanted="$wanted $fuzz" ;;
	bench) wanted="$wanted $bench" ;;
	*) echo "usage: deps.sh [build|demo|test|fuzz|bench] ..." >&2; exit 2 ;;
	esac
done

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: not a Debian system; please install by hand:" $wanted >&2
	exit 0
fi

missing=
for package in $wanted; do
	status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "deps.sh: installing$missing" >&2
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
# Preseeded: tshark asks whether ordinary users may capture.
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
