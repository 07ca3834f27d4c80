/* SPDX-License-Identifier: BSD-2-Clause */
#include "abi/newer/dmah.h"

#include <sched.h>
#include <stdlib.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "abi/newer/newer.h"

/* The processing hint is of two bits (PCIe 6.2, 2.2.7.1.1). */
enum { PH_MAX = 3 };

struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr);
int ibv_dealloc_dmah(struct ibv_dmah *dmah);

/* As with the kernel: a handle can be for processors that the caller itself may run on. */
static bool may_run_on(uint32_t cpu)
{
	cpu_set_t set;

	return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       CPU_ISSET(cpu, &set);
}

static int attr_check(const struct vb_dmah_init_attr *attr)
{
	static const uint32_t target = VB_DMAH_CPU_ID | VB_DMAH_TPH_MEM_TYPE;
	uint32_t mask = attr->comp_mask;

	if (mask & ~(target | VB_DMAH_PH))
		return vb_refuse(EOPNOTSUPP, "comp_mask 0x%x has unknown bits", mask);
	if (!(mask & VB_DMAH_PH) || attr->ph > PH_MAX)
		return vb_refuse(EINVAL, "a handle needs ph, of 0 to %d", PH_MAX);
	if ((mask & target) && (mask & target) != target)
		return vb_refuse(EINVAL, "cpu_id and tph_mem_type go together");
	if ((mask & target) && attr->tph_mem_type > VB_TPH_MEM_TYPE_PM)
		return vb_refuse(EINVAL, "tph_mem_type is %u, neither volatile nor persistent",
				 attr->tph_mem_type);
	if ((mask & target) && !may_run_on(attr->cpu_id))
		return vb_refuse(EPERM, "cpu_id is %u, where this thread may not run",
				 attr->cpu_id);
	return 0;
}

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context, struct ibv_dmah_init_attr *attr)
{
	struct vb_dmah *dmah = NULL;
	int rc = vb_abi_is_dead(context) ? EIO
					 : attr_check((const struct vb_dmah_init_attr *)attr);

	if (rc == 0) {
		dmah = calloc(1, sizeof(*dmah));
		rc = dmah ? 0 : ENOMEM;
	}
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	dmah->context = context;
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_DMAH, dmah);
	return (struct ibv_dmah *)dmah;
}

int ibv_dealloc_dmah(struct ibv_dmah *ibv)
{
	struct vb_dmah *dmah = (struct vb_dmah *)ibv;
	struct ibv_context *context;
	uint32_t regions;
	int rc = vb_known_end(VB_KNOWN_DMAH, dmah);

	if (rc != 0)
		return vb_abi_result(rc);
	context = dmah->context;
	if (vb_abi_is_gone(context))
		return 0;
	regions = atomic_load(&dmah->regions);
	if (regions)
		rc = vb_refuse(EBUSY, "%u regions are registered with it", regions);
	rc = vb_known_ended(VB_KNOWN_DMAH, dmah, rc);
	if (rc == 0)
		free(dmah);
	return vb_abi_ended(context, vb_abi_result(rc));
}
