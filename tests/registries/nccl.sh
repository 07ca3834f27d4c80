#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# NCCL on a machine without a GPU, as far as it goes: its own bootstrap runs, and then it ends in
# the CUDA runtime, which is linked into it, before it looks for a device. A net plugin of NCCL's
# interface, UCCL's, needs no CUDA to find devices and read their properties: that is done here, as
# NCCL does it. What is left takes two GPUs: nccl_gpu.sh.
. "$(dirname "$0")/../lib/registries.sh"
[ "${VB_REGISTRIES:-}" = all ] || [ -e "$got/venv.is" ] ||
	registries_skip "NCCL's wheel has 280 MB; VB_REGISTRIES=all gets it"
wheels nvidia-nccl-cu12==2.32.3 uccl==0.0.1.post4
. "$(dirname "$0")/../lib/suite.sh"

[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"
command -v cc >/dev/null || skip_all "no C compiler"
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
export NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=INFO
NCCL_IB_GID_INDEX=$(gid_index 127.0.0.1)
export NCCL_IB_GID_INDEX

# --- NCCL itself ---

nccl='
import ctypes, sys
class Id(ctypes.Structure):
    _fields_ = [("octets", ctypes.c_char * 128)]
nccl = ctypes.CDLL(sys.argv[1])
version, unique, comm = ctypes.c_int(), Id(), ctypes.c_void_p()
assert nccl.ncclGetVersion(ctypes.byref(version)) == 0
print("version", version.value)
print("unique id", nccl.ncclGetUniqueId(ctypes.byref(unique)))
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
print("communicator", nccl.ncclCommInitRank(ctypes.byref(comm), 1, unique, 0), flush=True)
'
timeout -k 5 "$limit_s" "${run[@]}" "$python" -c "$nccl" \
	"$packages/nvidia/nccl/lib/libnccl.so.2" >"$tmp/nccl" 2>&1
grep -q '^version 23203' "$tmp/nccl" && grep -q '^unique id 0' "$tmp/nccl" &&
	grep -q 'Bootstrap: Using lo:127.0.0.1' "$tmp/nccl"
verdict "NCCL's bootstrap" "it does not run" "$tmp/nccl"
if grep -q '^communicator 0' "$tmp/nccl"; then
	skip "NCCL ends where the CUDA runtime does" "there is a GPU here: run nccl_gpu.sh"
else
	grep -q '^communicator 1' "$tmp/nccl" && grep -q 'Cuda failure' "$tmp/nccl" &&
		! grep -q 'NET/IB' "$tmp/nccl"
	verdict "NCCL ends where the CUDA runtime does" "it ends elsewhere" "$tmp/nccl"
fi

# --- a net plugin ---

plugin=$packages/uccl/lib/libnccl-net-uccl.so
if ! cc -D_GNU_SOURCE -O1 -rdynamic -o "$tmp/nccl_net" "$VB_ROOT/tests/registries/nccl_net.c" \
	-ldl >"$tmp/output" 2>&1; then
	fail "it compiles" "it does not" "$tmp/output"
	suite_end
fi
# It takes no device that belongs to no NUMA node.
if [ ! -e /sys/devices/system/node/node0/cpulist ]; then
	skip "a net plugin" "this system shows no NUMA node"
	suite_end
fi
printf '[device verbatim0]\nnuma = 0\nrate = 200Gbit\npci = 0000:77:00.0\n' >"$tmp/table"
export VERBATIM_DEVICES=$tmp/table
for view in --view=mount --view=preload; do
	run=("$VB_BUILD/verbatim" run "$view" --)
	check "$view: a net plugin initializes" "${run[@]}" "$tmp/nccl_net" "$plugin"
	grep -q '^RDMA_Plugin: devices: 1$' "$tmp/output"
	verdict "$view: it finds the device" "it does not" "$tmp/output"
	grep -q '^device 0: verbatim0, 200000 Mbit/s, port 1, guid 0x.*, at .*0000:77:00.0$' \
		"$tmp/output"
	verdict "$view: it reads speed, port and place" "they are others" "$tmp/output"
done
suite_end
