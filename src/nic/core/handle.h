/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_HANDLE_H
#define VB_NIC_HANDLE_H

/*
 * Objects for which the application may have several pointers: from creation, and from
 * ibv_import_pd(3) and the like. Each of them can destroy the object, or be given up, which leaves
 * the object alone even if it was the last. So the original structure lives as long as the object,
 * or as an import that copies from it.
 *
 * Any thread. A list's lock is taken inside all others.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct vb_handle {
	struct vb_handle *next, **at;
	struct vb_handle *original; /* itself, unless it was imported */
	void *object;		    /* the structure that contains it */
	void (*free)(void *object); /* called with the list's lock held */
	uint64_t family;	    /* contexts of this family may import it */
	uint32_t number;	    /* `handle` in libibverbs' structures */
	uint32_t imports;	    /* of an original: number of imports */
	bool held;		    /* the application has the pointer */
	bool dead;		    /* of an original: the object was destroyed */
	bool waits;		    /* not held, but it has users */
	const _Atomic uint32_t *users; /* other objects point to it while this is not 0; or NULL */
};

struct vb_handles {
	vb_lock lock;
	struct vb_handle *first;
	uint32_t waiting; /* handles with `waits` */
};

void vb_handles_init(struct vb_handles *handles);

/* Frees handles that are no longer held. */
void vb_handles_fini(struct vb_handles *handles);

/* The caller has set handle->object, free, family, number and users. */
void vb_handle_add(struct vb_handles *handles, struct vb_handle *handle);

/*
 * Finds the live original with that family and number, and counts one more import of it; NULL:
 * none.
 */
struct vb_handle *vb_handle_find(struct vb_handles *handles, uint64_t family, uint32_t number);

/* As vb_handle_add(), for an import of the original that was found. */
void vb_handle_import(struct vb_handles *handles, struct vb_handle *handle,
		      struct vb_handle *original);

/* The original that was found is not imported after all. */
void vb_handle_unfind(struct vb_handles *handles, struct vb_handle *original);

/* Marks its object as destroyed. Returns true to the first caller only. */
bool vb_handle_kill(struct vb_handles *handles, struct vb_handle *handle);

/* Undoes vb_handle_kill(). */
void vb_handle_revive(struct vb_handles *handles, struct vb_handle *handle);

/* Does any handle of the same object have users? */
bool vb_handle_is_used(struct vb_handles *handles, const struct vb_handle *handle);

/* The application gives up its pointer; frees what can be freed. */
void vb_handle_drop(struct vb_handles *handles, struct vb_handle *handle);

#endif
