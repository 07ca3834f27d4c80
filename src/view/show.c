/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/show.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"
#include "view/lease.h"

static const struct {
	const char *name;
} names[] = {
	[VB_VIEW_SHOW_AUTO] = { "auto" },
	[VB_VIEW_SHOW_MOUNT] = { "mount" },
	[VB_VIEW_SHOW_PRELOAD] = { "preload" },
	[VB_VIEW_SHOW_NONE] = { "none" },
};

const struct vb_words vb_view_show_names = VB_WORDS(names);

const char *vb_view_show_why(char *text, size_t bytes, enum vb_view_step step, int error)
{
	static const struct {
		enum vb_view_step step;
		int error;
		const char *remedy;
	} remedies[] = {
		{ VB_VIEW_STEP_USER, EPERM,
		  "a container's seccomp profile may forbid user namespaces, or this system: "
		  "kernel.unprivileged_userns_clone=1, or "
		  "kernel.apparmor_restrict_unprivileged_userns=0, allows them" },
		{ VB_VIEW_STEP_USER, EACCES,
		  "this system forbids user namespaces: "
		  "kernel.apparmor_restrict_unprivileged_userns=0 allows them" },
		{ VB_VIEW_STEP_USER, ENOSPC, "user.max_user_namespaces is the bound" },
		{ VB_VIEW_STEP_NAMESPACE, ENOSPC, "user.max_mnt_namespaces is the bound" },
		{ VB_VIEW_STEP_NAMESPACE, EPERM,
		  "a container may forbid it; it takes CAP_SYS_ADMIN there" },
		{ VB_VIEW_STEP_MOUNT, EPERM, "a container's security profile may forbid mounts" },
		{ VB_VIEW_STEP_MOUNT, EACCES, "a container's security profile may forbid mounts" },
	};
	static const char *const steps[] = {
		[VB_VIEW_STEP_NONE] = "",
		[VB_VIEW_STEP_USER] = "to enter a user namespace: ",
		[VB_VIEW_STEP_NAMESPACE] = "to have a mount namespace: ",
		[VB_VIEW_STEP_MOUNT] = "to mount: ",
	};
	const struct vb_failure *failure = vb_failure_of(error);
	const char *remedy = NULL;

	if (step == VB_VIEW_STEP_NONE && failure) {
		snprintf(text, bytes, "%s%s%s", failure->text, failure->explained ? "" : ": ",
			 failure->explained ? "" : strerror(error));
		return text;
	}
	for (unsigned i = 0; i < VB_ARRAY_LEN(remedies); i++) {
		if (remedies[i].step == step && remedies[i].error == error)
			remedy = remedies[i].remedy;
	}
	snprintf(text, bytes, "%s%s%s%s", steps[step], strerror(error), remedy ? "; " : "",
		 remedy ? remedy : "");
	return text;
}

static int by_mount(struct vb_view_lease *lease, struct vb_view_shown *shown, bool is_free)
{
	if (vb_view_mount_is_shown(lease->root))
		return 0;
	shown->mount_step = VB_VIEW_STEP_USER;
	shown->mount_error = is_free || lease->user_ns_fd >= 0 ? 0 : lease->user_ns_error;
	if (!shown->mount_error)
		shown->mount_error = vb_view_mount(lease->root, is_free ? -1 : lease->user_ns_fd,
						   &shown->mount_step);
	return shown->mount_error;
}

/*
 * In a user namespace sudo and ssh do not work: an ordinary user gets one if asked for only.
 */
static int by_some(enum vb_view_show wanted, const char *library, struct vb_view_lease *lease,
		   struct vb_view_shown *shown)
{
	bool is_free = vb_view_mount_is_free(), may_mount;

	may_mount = wanted == VB_VIEW_SHOW_MOUNT ||
		    (wanted == VB_VIEW_SHOW_AUTO &&
		     (is_free || vb_view_mount_is_shown(lease->root)));
	shown->by = VB_VIEW_SHOW_MOUNT;
	if (may_mount && !by_mount(lease, shown, is_free))
		return 0;
	if (wanted == VB_VIEW_SHOW_MOUNT)
		return shown->mount_error;
	shown->by = VB_VIEW_SHOW_PRELOAD;
	if (!access(library, R_OK))
		return 0;
	shown->by = VB_VIEW_SHOW_NONE;
	shown->error = vb_failed(ENOENT, library);
	return wanted == VB_VIEW_SHOW_PRELOAD ? ENOENT : 0;
}

int vb_view_show(enum vb_view_show wanted, const char *library, struct vb_view_shown *shown)
{
	struct vb_view_lease lease;
	char path[PATH_MAX + 8];
	int rc;

	*shown = (struct vb_view_shown){ .by = VB_VIEW_SHOW_NONE };
	if (wanted == VB_VIEW_SHOW_NONE)
		return 0;
	shown->error = vb_view_lease_take(&lease, wanted == VB_VIEW_SHOW_MOUNT &&
							  !vb_view_mount_is_free());
	if (shown->error)
		return wanted == VB_VIEW_SHOW_AUTO ? 0 : shown->error;
	rc = by_some(wanted, library, &lease, shown);
	if (!rc) {
		memcpy(shown->root, lease.root, sizeof(shown->root));
		setenv("VERBATIM_VIEW_ROOT", lease.root, 1);
	}
	/* Neither way is possible: what asks libraries for the place is told. */
	snprintf(path, sizeof(path), "%s/sys", lease.root);
	if (!rc && shown->by == VB_VIEW_SHOW_NONE)
		setenv("SYSFS_PATH", path, 0);
	vb_view_lease_settle(&lease);
	return rc;
}
