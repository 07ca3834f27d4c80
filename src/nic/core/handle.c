/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/core/handle.h"

#include <stddef.h>

void vb_handles_init(struct vb_handles *handles)
{
	vb_lock_init(&handles->lock, VB_RANK_HANDLES);
}

static void link_in(struct vb_handles *handles, struct vb_handle *handle)
{
	handle->held = true;
	handle->next = handles->first;
	handle->at = &handles->first;
	if (handle->next)
		handle->next->at = &handle->next;
	handles->first = handle;
}

static void unlink_and_free(struct vb_handle *handle)
{
	*handle->at = handle->next;
	if (handle->next)
		handle->next->at = handle->at;
	handle->free(handle->object);
}

void vb_handles_fini(struct vb_handles *handles)
{
	struct vb_handle *next;

	for (struct vb_handle *handle = handles->first; handle; handle = next) {
		next = handle->next;
		if (!handle->held)
			unlink_and_free(handle);
	}
	vb_lock_fini(&handles->lock);
}

static bool has_users(const struct vb_handle *handle)
{
	return handle->users && atomic_load(handle->users);
}

static bool is_of_no_use(const struct vb_handle *handle)
{
	return !handle->held && !handle->imports &&
	       (handle->original != handle || handle->dead) && !has_users(handle);
}

/* Frees it if possible, and then perhaps its original. */
static void free_if_possible(struct vb_handle *handle)
{
	struct vb_handle *original = handle->original;

	if (!is_of_no_use(handle))
		return;
	unlink_and_free(handle);
	if (original != handle) {
		original->imports--;
		if (is_of_no_use(original))
			unlink_and_free(original);
	}
}

/* Frees handles whose users are gone. Restarts after each, since freeing one may free another. */
static void sweep(struct vb_handles *handles)
{
	struct vb_handle *handle = handles->waiting ? handles->first : NULL;

	while (handle) {
		bool ripe = handle->waits && !has_users(handle);

		if (ripe) {
			handles->waiting--;
			handle->waits = false;
			free_if_possible(handle);
		}
		handle = ripe ? handles->first : handle->next;
	}
}

void vb_handle_add(struct vb_handles *handles, struct vb_handle *handle)
{
	handle->original = handle;
	vb_lock_take(&handles->lock);
	sweep(handles);
	link_in(handles, handle);
	vb_lock_drop(&handles->lock);
}

struct vb_handle *vb_handle_find(struct vb_handles *handles, uint64_t family, uint32_t number)
{
	struct vb_handle *handle;

	vb_lock_take(&handles->lock);
	handle = handles->first;
	while (handle && (handle->original != handle || handle->dead ||
			  handle->family != family || handle->number != number))
		handle = handle->next;
	if (handle)
		handle->imports++;
	vb_lock_drop(&handles->lock);
	return handle;
}

void vb_handle_import(struct vb_handles *handles, struct vb_handle *handle,
		      struct vb_handle *original)
{
	handle->original = original;
	vb_lock_take(&handles->lock);
	link_in(handles, handle);
	vb_lock_drop(&handles->lock);
}

void vb_handle_unfind(struct vb_handles *handles, struct vb_handle *original)
{
	vb_lock_take(&handles->lock);
	original->imports--;
	free_if_possible(original);
	vb_lock_drop(&handles->lock);
}

bool vb_handle_kill(struct vb_handles *handles, struct vb_handle *handle)
{
	bool first;

	vb_lock_take(&handles->lock);
	first = !handle->original->dead;
	handle->original->dead = true;
	vb_lock_drop(&handles->lock);
	return first;
}

void vb_handle_revive(struct vb_handles *handles, struct vb_handle *handle)
{
	vb_lock_take(&handles->lock);
	handle->original->dead = false;
	vb_lock_drop(&handles->lock);
}

bool vb_handle_is_used(struct vb_handles *handles, const struct vb_handle *handle)
{
	const struct vb_handle *original = handle->original;
	bool used = false;

	vb_lock_take(&handles->lock);
	if (!original->imports)
		used = has_users(original);
	for (const struct vb_handle *at = handles->first; original->imports && at && !used;
	     at = at->next)
		used = at->original == original && has_users(at);
	vb_lock_drop(&handles->lock);
	return used;
}

void vb_handle_drop(struct vb_handles *handles, struct vb_handle *handle)
{
	vb_lock_take(&handles->lock);
	handle->held = false;
	if (has_users(handle) && (handle->original != handle || handle->dead)) {
		handle->waits = true;
		handles->waiting++;
	} else {
		free_if_possible(handle);
	}
	sweep(handles);
	vb_lock_drop(&handles->lock);
}
