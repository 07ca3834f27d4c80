/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_LINK_MAIL_H
#define VB_LINK_MAIL_H

/*
 * Frames that did not come by a link's own socket, and are to be taken as if they had: whoever
 * wraps the link sees them, too.
 */

#include <stdbool.h>

#include "base/frame.h"
#include "base/lock.h"

enum {
	VB_MAIL_MAX = 16384,	   /* frames that wait; later ones are lost */
	VB_MAIL_FRAME_BYTES = 512, /* of one */
};

struct vb_letter;

struct vb_mail {
	vb_lock lock;
	struct vb_letter *_Atomic first; /* that wait; read without the lock: are there any? */
	struct vb_letter *last;
	struct vb_letter *taken; /* by the last vb_mail_take() */
	unsigned count;
};

void vb_mail_init(struct vb_mail *mail);

/* Copy a frame. False: there is no room, no memory, or it is too long. Any thread. */
bool vb_mail_put(struct vb_mail *mail, const struct vb_frame *frame);

/*
 * Up to max of those that wait, in their order. Their octets stay valid until the next call. One
 * thread at a time.
 */
unsigned vb_mail_take(struct vb_mail *mail, struct vb_frame *frames, unsigned max);

/* Does anything wait? Any thread. */
static inline bool vb_mail_waits(const struct vb_mail *mail)
{
	return atomic_load_explicit(&mail->first, memory_order_acquire) != NULL;
}

void vb_mail_fini(struct vb_mail *mail);

#endif
