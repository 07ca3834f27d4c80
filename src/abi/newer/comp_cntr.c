/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/control/qp_counted.h"

#include <string.h>

#include "abi/verbs/abi.h"
#include "abi/verbs/context.h"
#include "base/check.h"
#include "run/progress.h"

struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			      size_t caps_size);
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *cntr);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *cntr,
			    struct ibv_qp_attach_comp_cntr_attr *attr);
int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value);

int _ibv_query_comp_cntr_caps(struct ibv_context *context, struct ibv_comp_cntr_caps *caps,
			      size_t caps_size)
{
	struct vb_comp_cntr_caps full;

	if (vb_abi_is_dead(context))
		return vb_abi_result(EIO);
	vb_comp_cntr_query(&full);
	memset(caps, 0, caps_size);
	memcpy(caps, &full, vb_min_u64(caps_size, sizeof(full)));
	return 0;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *attr)
{
	struct vb_comp_cntr *cntr;
	int rc = EIO;

	if (!vb_abi_is_dead(context))
		rc = vb_comp_cntr_create(vb_ctx_of(context),
					 (const struct vb_comp_cntr_init_attr *)attr, &cntr);
	if (rc != 0) {
		vb_abi_result(rc);
		return NULL;
	}
	vb_abi_made(context);
	vb_known_add(VB_KNOWN_COMP_CNTR, cntr);
	return (struct ibv_comp_cntr *)cntr;
}

int ibv_destroy_comp_cntr(struct ibv_comp_cntr *ibv)
{
	struct vb_comp_cntr *cntr = (struct vb_comp_cntr *)ibv;
	struct ibv_context *context;
	int rc = vb_known_end(VB_KNOWN_COMP_CNTR, cntr);

	if (rc != 0)
		return vb_abi_result(rc);
	context = cntr->context;
	if (vb_abi_is_gone(context))
		return 0;
	rc = vb_known_ended(VB_KNOWN_COMP_CNTR, cntr, vb_comp_cntr_destroy(cntr));
	return vb_abi_ended(context, vb_abi_result(rc));
}

int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *ibv,
			    struct ibv_qp_attach_comp_cntr_attr *attr)
{
	struct vb_comp_cntr *cntr = (struct vb_comp_cntr *)ibv;
	int rc = vb_abi_check(QP, qp);

	if (rc == 0)
		rc = vb_abi_check(COMP_CNTR, cntr);
	if (rc == 0)
		rc = vb_qp_comp_cntr_attach((struct vb_qp *)qp, cntr,
					    (const struct vb_comp_cntr_attach_attr *)attr);
	return vb_abi_result(rc);
}

/* --- the values --- */

static int change(struct ibv_comp_cntr *ibv, size_t which, uint64_t value, bool adds)
{
	struct vb_comp_cntr *cntr = (struct vb_comp_cntr *)ibv;
	int rc = vb_abi_check(COMP_CNTR, cntr);
	_Atomic uint64_t *at = (_Atomic uint64_t *)((char *)cntr + which);

	if (rc == 0 && adds)
		atomic_fetch_add(at, value);
	else if (rc == 0)
		atomic_store(at, value);
	return rc;
}

int ibv_set_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	return vb_abi_result(change(cntr, offsetof(struct vb_comp_cntr, done), value, false));
}

int ibv_set_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t value)
{
	return vb_abi_result(change(cntr, offsetof(struct vb_comp_cntr, failed), value, false));
}

int ibv_inc_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	return vb_abi_result(change(cntr, offsetof(struct vb_comp_cntr, done), amount, true));
}

int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t amount)
{
	return vb_abi_result(change(cntr, offsetof(struct vb_comp_cntr, failed), amount, true));
}

/*
 * Reading turns the NIC, as polling a CQ does: who waits for a counter polls nothing else. The
 * values can be read of a failed device, too, whose work requests have ended with errors.
 */
static int look(struct ibv_comp_cntr *ibv, size_t which, uint64_t *value)
{
	struct vb_comp_cntr *cntr = (struct vb_comp_cntr *)ibv;
	int rc = vb_known(VB_KNOWN_COMP_CNTR, cntr);

	if (rc == 0 && vb_abi_is_gone(cntr->context))
		rc = vb_refuse(EIO, "the device was opened before a fork");
	if (rc != 0)
		return rc;
	vb_progress_poll(vb_device_of(cntr->context));
	*value = atomic_load_explicit((_Atomic uint64_t *)((char *)cntr + which),
				      memory_order_acquire);
	return 0;
}

int ibv_read_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return vb_abi_result(look(cntr, offsetof(struct vb_comp_cntr, done), value));
}

int ibv_read_err_comp_cntr(struct ibv_comp_cntr *cntr, uint64_t *value)
{
	return vb_abi_result(look(cntr, offsetof(struct vb_comp_cntr, failed), value));
}
