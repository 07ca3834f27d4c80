/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_HANDLE_H
#define VB_NIC_HANDLE_H

/*
 * Objects that the application may hold several times: by the pointer that it got when it made
 * them, and by those of ibv_import_pd(3) and its kin. Each of these can destroy the object, or be
 * given up, which leaves the object alone, even if nobody holds it any more. So what was made first
 * lives on for as long as the object does, or an import that copies from it.
 *
 * Any thread. A list's lock is inside all others.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct vb_handle {
	struct vb_handle *next, **at;
	struct vb_handle *original; /* itself, unless it was imported */
	void *object;		    /* what it is a part of */
	void (*free)(void *object); /* called with the list's lock held */
	uint64_t family;	    /* contexts that may import it: imported from each other */
	uint32_t number;	    /* `handle` in the structures of libibverbs */
	uint32_t imports;	    /* of an original: how many there are */
	bool held;		    /* the application has the pointer */
	bool dead;		    /* of an original: the object was destroyed */
	bool waits;		    /* nobody holds it, and it has users */
	const _Atomic uint32_t *users; /* others that point to it while this is not 0; or NULL */
};

struct vb_handles {
	vb_lock lock;
	struct vb_handle *first;
	uint32_t waiting; /* how many do */
};

void vb_handles_init(struct vb_handles *handles);

/* Frees what nobody holds. */
void vb_handles_fini(struct vb_handles *handles);

/* handle->object, free, family, number and users are set, the rest is done here. */
void vb_handle_add(struct vb_handles *handles, struct vb_handle *handle);

/* The live original with that family and number, and one more import of it; NULL: there is none. */
struct vb_handle *vb_handle_find(struct vb_handles *handles, uint64_t family, uint32_t number);

/* As vb_handle_add(), for what was made from the original that was found. */
void vb_handle_import(struct vb_handles *handles, struct vb_handle *handle,
		      struct vb_handle *original);

/* What was found is not imported after all. */
void vb_handle_unfind(struct vb_handles *handles, struct vb_handle *original);

/* Destroy the object that it stands for: true for the first who does. */
bool vb_handle_kill(struct vb_handles *handles, struct vb_handle *handle);

/* It was not destroyed after all. */
void vb_handle_revive(struct vb_handles *handles, struct vb_handle *handle);

/* Has anything that stands for the same object users? */
bool vb_handle_is_used(struct vb_handles *handles, const struct vb_handle *handle);

/* The application has no use for its pointer any more; frees what can be freed. */
void vb_handle_drop(struct vb_handles *handles, struct vb_handle *handle);

#endif
