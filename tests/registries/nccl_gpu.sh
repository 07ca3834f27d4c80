#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# NCCL's own InfiniBand transport over verbatim, between two ranks with a GPU each (or with parts of
# one). Where there is no GPU it skips: this is to be run on a machine that has one,
#
#     tests/registries/nccl_gpu.sh
#
# with a python3 in which PyTorch with CUDA is installed ($VB_PYTHON, else python3). GPUDirect is
# off: data go by way of the host's memory, which is what verbatim can reach.
. "$(dirname "$0")/../lib/suite.sh"

python=${VB_PYTHON:-python3}
limit_s=180
[ -z "$VB_SANITIZE" ] || skip_all "a sanitizer's runtime does not go with Python's wheels"
command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q ^GPU ||
	skip_all "no GPU of NVIDIA's (nvidia-smi -L)"
"$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null ||
	skip_all "no PyTorch with CUDA in $python (VB_PYTHON names another)"
[ "$("$python" -c 'import torch; print(torch.cuda.device_count())')" -ge 2 ] ||
	skip_all "NCCL takes a GPU for each of two ranks, and there is one"

export NCCL_DEBUG=INFO NCCL_NET=IB NCCL_IB_HCA=verbatim0 NCCL_SOCKET_IFNAME=lo
export NCCL_NET_GDR_LEVEL=LOC NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
export NCCL_IB_GID_INDEX
NCCL_IB_GID_INDEX=$(gid_index 127.0.0.1)
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29555 WORLD_SIZE=2

rank='
import os, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
for count in 1, 1000, 1 << 20, 10_000_000:
    x = torch.arange(count, device="cuda", dtype=torch.int64) * (rank + 1)
    dist.all_reduce(x)
    assert torch.equal(x, torch.arange(count, device="cuda", dtype=torch.int64) * 3), count
    y = torch.full((count,), rank + 5, device="cuda")
    dist.broadcast(y, src=1)
    assert bool((y == 6).all()), count
dist.destroy_process_group()
print("all sums are right", flush=True)
'

# ranks NAME [OPTION ...]: two, by what `verbatim run` is given.
ranks() {
	local name=$1 i rc=0 pids=()
	shift
	for i in 0 1; do
		RANK=$i LOCAL_RANK=$i timeout -k 5 "$limit_s" "$VB_BUILD/verbatim" run "$@" -- \
			"$python" -c "$rank" >"$tmp/rank$i" 2>&1 &
		pids+=($!)
	done
	for i in 0 1; do
		wait "${pids[i]}" && grep -q '^all sums are right' "$tmp/rank$i" || rc=1
	done
	[ $rc = 0 ]
	verdict "$name: all_reduce and broadcast" "one failed" "$tmp/rank0" "$tmp/rank1"
	grep -Eq 'NET/IB : Using \[0\]verbatim0:1/RoCE' "$tmp/rank0"
	verdict "$name: by NCCL's InfiniBand transport" "its log does not say so" "$tmp/rank0"
	grep -Eq 'via NET/IB/0' "$tmp/rank0" && ! grep -Eq 'via (P2P|SHM|NET/Socket)' "$tmp/rank0"
	verdict "$name: and by nothing else" "its log says otherwise" "$tmp/rank0"
}

ranks "the view by mount" --view=mount
ranks "the view by preload" --view=preload
link_use udp
ranks "by UDP"
suite_end
