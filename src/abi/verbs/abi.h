/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_ABI_VERBS_ABI_H
#define VB_ABI_VERBS_ABI_H

/*
 * Shared by the files of libibverbs. They unpack, call the NIC and repack; they decide nothing.
 *
 * An object that the application holds is the NIC's object. In a forked child the inherited ones
 * are dead (see run/device.h): calls on them fail with EIO. Destroying them does nothing and
 * succeeds, because nothing of the child's is left to destroy. What needs no NIC works: querying
 * the device's capabilities, and device memory that the child allocates and copies to and from.
 */

#include <errno.h>
#include <infiniband/verbs.h>

#include "abi/verbs/known.h"
#include "base/refusal.h"
#include "nic/core/ctx.h"
#include "nic/data/qp_error.h"
#include "run/device.h"
#include "run/process/report.h"

static inline struct vb_device *vb_device_of(struct ibv_context *context)
{
	return vb_ctx_of(context)->run;
}

static inline struct vb_nic *vb_abi_nic(struct ibv_context *context)
{
	return vb_ctx_of(context)->nic;
}

static inline bool vb_abi_is_gone(struct ibv_context *context)
{
	return vb_device_is_gone(vb_device_of(context));
}

/*
 * Has the device gone or failed (vb_nic_fail)? Then control verbs fail with EIO. Of a failed
 * device, objects can still be destroyed, posted to and polled.
 */
static inline bool vb_abi_is_dead(struct ibv_context *context)
{
	return vb_abi_is_gone(context) || vb_nic_has_failed(vb_abi_nic(context));
}

/*
 * Every control verb begins with this: EIO for a dead device, ENOENT for what is not such an
 * object, as from a kernel that looks up its handle (known.h).
 */
static inline int vb_abi_usable(enum vb_known_kind kind, const void *object,
				struct ibv_context *const *context)
{
	int rc = vb_known(kind, object);

	return rc == 0 && vb_abi_is_dead(*context)
		       ? vb_refuse(EIO, "the device has failed, or was opened before a fork")
		       : rc;
}

#define vb_abi_check(kind, object) vb_abi_usable(VB_KNOWN_##kind, object, &(object)->context)

/*
 * The end of every control verb: a refusal is reported under the verb's name
 * (run/process/report.h). Functions that return an errno set it as well, as a call into the kernel
 * does, since some programs print it.
 */
#define vb_abi_result(rc) vb_abi_end(__func__, rc)

static inline int vb_abi_end(const char *function, int rc)
{
	if (rc != 0)
		errno = vb_report_refused(function, rc);
	return rc;
}

/* For functions that return -1 and set errno. */
static inline int vb_abi_minus_one(int err)
{
	errno = err;
	return -1;
}

#endif
