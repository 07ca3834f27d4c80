/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints "NAME ERRNO" for each probe (probe.h). */
#include "probe.h"

#include "netns.h"

static void fill(struct ibv_qp_init_attr_ex *attr, const struct vt_end *end,
		 enum ibv_qp_type type, uint64_t ops)
{
	*attr = (struct ibv_qp_init_attr_ex){
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 2, .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = vt.pd,
		.send_ops_flags = ops,
	};
}

void probe_end_open(struct vt_end *end, enum ibv_qp_type type, uint64_t ops)
{
	struct vt_options opt = vt_options(&(struct vt_options){ .type = type });
	struct ibv_qp_init_attr_ex attr;

	*end = (struct vt_end){ .bytes = 4096 };
	opt.mr_access |= IBV_ACCESS_MW_BIND;
	end->cq = vt_cq(16, NULL);
	end->buf = aligned_alloc(4096, end->bytes);
	memset(end->buf, 0, end->bytes);
	end->mr = vt_mr(vt.pd, end->buf, end->bytes, opt.mr_access);
	if (type == IBV_QPT_UD)
		end->ah = vt_ah();
	fill(&attr, end, type, ops);
	errno = 0;
	end->qp = ibv_create_qp_ex(vt.ctx, &attr);
	if (end->qp)
		vt_climb(end->qp, &opt, IBV_QPS_RTS, end->qp->qp_num);
}

int main(void)
{
	static const struct probe *const parts[] = { probe_device, probe_memory, probe_queues,
						     probe_qps, probe_requests, probe_frames,
						     probe_later, probe_newer };
	void *state = NULL;

	if (!netns_enter()) {
		printf("1..1\nok 1 - probe # SKIP " NO_NETWORK_NAMESPACE "\n");
		return 0;
	}
	vt_setup(&state);
	for (size_t i = 0; i < VT_COUNT(parts); i++) {
		for (const struct probe *p = parts[i]; p->name; p++) {
			errno = 0;
			printf("%s %d\n", p->name, p->call(p->value));
			fflush(stdout); /* who reads it sees in which one a crash was */
		}
	}
	/* Not 0: a probe left something behind. */
	return vt_teardown(&state);
}
