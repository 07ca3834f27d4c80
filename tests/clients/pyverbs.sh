#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The pyverbs tests of Debian's rdma-core package, one process for each module: those that are for
# any vendor, and with the persona those for mlx5.
. "$(dirname "$0")/../lib/suite.sh"
. "$(dirname "$0")/../lib/pyverbs.sh"

pyverbs_unpack || skip_all "no $shipped"

# Modules that have to pass, but for tests that need what this NIC does not have yet or this
# machine cannot have.
passing="addr pd cq cq_events cqex fork atomic relaxed_ordering device mr qp qpex parent_domain"
passing+=" tag_matching mlx5_timestamp odp shared_pd flow rss_traffic srq"
mlx5="mlx5_cq mlx5_crypto mlx5_cuda_umem mlx5_dc mlx5_devx mlx5_dm_ops mlx5_dma_memcpy mlx5_dr"
mlx5+=" mlx5_flow mlx5_huge_page mlx5_lag_affinity mlx5_mkey mlx5_pp mlx5_query_port mlx5_raw_wqe"
mlx5+=" mlx5_sched mlx5_timestamp mlx5_uar mlx5_udp_sport mlx5_var mlx5_vfio"
lacking='dmabuf|must be done by root|no huge pages' # pyverbs asks who it is, we do not
lacking+='|Converting timestamp' # only mlx5 can; the time of day needs none
# docs/mlx5dv.md has a line on each of these.
mlx5_lacking='CQE 128B compression|Crypto login details|cuda-python|DevX context'
mlx5_lacking+='|DevX general command|DrDomain creation failed|DrActionQp creation failed'
mlx5_lacking+='|Matcher creation|scapy package|PCI device|LAG affinity|net interface'
mlx5_lacking+='|chedule elements|UAR allocation|VAR allocation|ALLOC_TYPE'
mlx5_lacking+='|mkey_sig_\w+: Create|raw_wqe_traffic: Create|must be in switchdev mode'
export VB_LEFT_OUT="test_obj_on_huge=MLX_QP_ALLOC_TYPE and the like are not looked at"
VB_LEFT_OUT+="
test_get_pkey_index=of rdma-core 56: reads the kernel's own file of the device"

gid=$(gid_index 127.0.0.1)
for name in $passing; do
	pyverbs_module "" "$name" "$lacking"
done
# Ids that are bound to 127.0.0.1 have no device, and these tests expect one.
address=192.0.2.1
if ip address add $address/32 dev lo 2>/dev/null; then
	gid=$(gid_index $address)
	VB_ADDRESS=$address pyverbs_module "" rdmacm "$lacking"
	VERBATIM_PERSONA=connectx7 VB_ADDRESS=$address \
		pyverbs_module "mlx5 " mlx5_rdmacm "$mlx5_lacking"
else
	skip "test_rdmacm" "no address can be added"
fi
ip address del $address/32 dev lo 2>/dev/null
gid=$(gid_index 127.0.0.1)

# The neutral device skips them all: it is of no vendor that they know.
export VERBATIM_PERSONA=connectx7
for name in $mlx5; do
	pyverbs_module "mlx5 " "$name" "$mlx5_lacking"
done
# On it, all the others go another way too: data is in completions.
for name in $passing; do
	pyverbs_module "connectx7 " "$name" "$lacking|$mlx5_lacking"
done
unset VERBATIM_PERSONA

gid=$(gid_index ::1)
for name in addr cq_events atomic qp; do
	pyverbs_module "IPv6 " "$name" "$lacking"
done

if user_become; then
	gid=$(gid_index 127.0.0.1 "${on_client[@]}")
	for name in addr cq_events atomic mr odp shared_pd qp; do
		pyverbs_module "user " "$name" "$lacking"
	done
else
	skip "as an ordinary user" "nobody cannot read $VB_BUILD"
fi

link_use udp
on_client=()
lacking+='|QP type 8|Raw Packet QP' # Ethernet's segment is shared memory
gid=$(gid_index 127.0.0.1)
for name in cq_events cqex atomic relaxed_ordering device mr odp shared_pd qp qpex parent_domain \
	tag_matching mlx5_timestamp; do
	pyverbs_module "udp " "$name" "$lacking"
done
suite_end
