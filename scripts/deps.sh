#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian or Ubuntu packages that a target of the Makefile lacks.
#   deps.sh [--print] TARGET ...   build, demo, check, asan, tsan, fuzz, bench or bare
# With --print it only prints the names of the packages, whether they are installed or not.
# Says nothing and needs no root where nothing is missing. Exit status 1: not everything is there.
set -eu

# What compiles and links verbatim.
build="gcc libc6-dev make meson ninja-build pkg-config libibverbs-dev librdmacm-dev libisal-dev
	libcmocka-dev libdw-dev systemtap-sdt-dev"
# The programs that the demo runs.
demo="$build ibverbs-utils perftest iproute2"
# The clients of the test suites.
check="$demo python3 python3-prometheus-client binutils rdmacm-utils python3-pyverbs
	rdma-core qperf fio libfabric-bin libfabric1 ucx-utils openmpi-bin python3-mpi4py
	dapl2-utils librpma-dev mpich tshark nftables iperf3 util-linux procps valgrind
	redis-tools memcached libmemcached-tools nginx-light apache2-utils curl socat netcat-openbsd
	qemu-system-x86 busybox-static kmod tgt libiscsi-bin qemu-utils qemu-block-extra
	open-iscsi e2fsprogs gdb python3-venv libnuma1 g++ libgloo-dev hwloc-nox libhwloc-plugins
	mandoc man-db zsh fish prometheus-node-exporter"
# libFuzzer is part of clang's runtime, which clang only recommends.
fuzz="$build clang libclang-rt-dev llvm"
# What the figures are compared with, and drawn by.
bench="$demo python3 ucx-utils libfabric-bin libfabric1 iperf3 redis-tools gnuplot-nox util-linux"
# What counts instructions.
budget="$build python3 valgrind iproute2 util-linux"
# Of these, some releases have none; the tests that need them skip.
rare="dapl2-utils librpma-dev libgloo-dev"
# What makes the bare machine of tests/bare.
bare="debootstrap python3 util-linux iproute2"

usage() {
	echo "usage: deps.sh [--print] build|demo|check|asan|tsan|fuzz|bench|budget|bare ..." >&2
	exit 2
}

print=
if [ "${1:-}" = --print ]; then
	print=1
	shift
fi
[ $# -gt 0 ] || usage
wanted=
for target; do
	case $target in
	build) wanted="$wanted $build" ;;
	demo) wanted="$wanted $demo" ;;
	check | asan | tsan) wanted="$wanted $check" ;;
	fuzz) wanted="$wanted $fuzz" ;;
	bench) wanted="$wanted $bench" ;;
	budget) wanted="$wanted $budget" ;;
	bare) wanted="$wanted $bare" ;;
	*) usage ;;
	esac
done
# shellcheck disable=SC2086 # lists of packages, here and below
wanted=$(printf '%s\n' $wanted | sort -u)

if [ -n "$print" ]; then
	echo $wanted
	exit 0
fi

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: this is no Debian or Ubuntu, so nothing is installed. Wanted, by the names" \
		"that Debian has for them:" $wanted >&2
	exit 0
fi

# can_be_had PACKAGE: not known to be none of this release's. Without lists nothing is known.
can_be_had() {
	case " $rare " in
	*" $1 "*) apt-cache show "$1" >/dev/null 2>&1 || ! apt-cache show make >/dev/null 2>&1 ;;
	esac
}

missing_find() {
	missing=
	for package in $wanted; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$status" = installed ] || ! can_be_had "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || exit 0
}

missing_find

# give_up WHY: says what an administrator has to do instead.
give_up() {
	echo "deps.sh: $1. An administrator has to install these packages:" >&2
	echo "    apt-get install --no-install-recommends$missing" >&2
	exit 1
}

# Nobody is there to type a password where there is no terminal.
as_root=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null ||
		give_up "packages are missing, you are not root, and there is no sudo"
	as_root=sudo
	[ -t 0 ] || as_root="sudo -n"
	$as_root true || give_up "packages are missing, and sudo does not let you install them"
fi
echo "deps.sh: installing$missing" >&2
$as_root apt-get update -q || give_up "apt-get update fails"
missing_find
# Some of them are servers, wanted as programs: none is started as a service.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
	trap '$as_root rm -f $policy' EXIT
	trap 'exit 1' HUP INT TERM
	printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
	$as_root chmod 755 $policy
fi
# Without questions: tshark asks whether ordinary users may capture.
$as_root env DEBIAN_FRONTEND=noninteractive \
	apt-get install -q -y --no-install-recommends $missing || give_up "apt-get install fails"
