/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/mail.h"

#include <stdlib.h>
#include <string.h>

struct vb_letter {
	struct vb_letter *next;
	struct vb_frame frame; /* its data: octets */
	uint8_t octets[];
};

void vb_mail_init(struct vb_mail *mail)
{
	memset(mail, 0, sizeof(*mail));
	vb_lock_init(&mail->lock, VB_RANK_MAIL);
}

static void letters_free(struct vb_letter *letter)
{
	while (letter) {
		struct vb_letter *next = letter->next;

		free(letter);
		letter = next;
	}
}

/* False: too many wait. */
static bool append(struct vb_mail *mail, struct vb_letter *letter)
{
	if (mail->count == VB_MAIL_MAX)
		return false;
	mail->count++;
	if (mail->last)
		mail->last->next = letter;
	mail->last = letter;
	if (!atomic_load(&mail->first))
		atomic_store(&mail->first, letter);
	return true;
}

bool vb_mail_put(struct vb_mail *mail, const struct vb_frame *frame)
{
	struct vb_letter *letter = NULL;
	bool done;

	if (frame->bytes <= VB_MAIL_FRAME_BYTES)
		letter = malloc(sizeof(*letter) + frame->bytes);
	if (!letter)
		return false;
	letter->next = NULL;
	letter->frame = *frame;
	letter->frame.data = letter->octets;
	memcpy(letter->octets, frame->data, frame->bytes);
	vb_lock_take(&mail->lock);
	done = append(mail, letter);
	vb_lock_drop(&mail->lock);
	if (!done)
		free(letter);
	return done;
}

unsigned vb_mail_take(struct vb_mail *mail, struct vb_frame *frames, unsigned max)
{
	struct vb_letter *letter, *last = NULL;
	unsigned n = 0;

	letters_free(mail->taken);
	mail->taken = NULL;
	if (!vb_mail_waits(mail))
		return 0;
	vb_lock_take(&mail->lock);
	mail->taken = letter = atomic_load(&mail->first);
	for (; letter && n < max; letter = letter->next) {
		frames[n++] = letter->frame;
		last = letter;
	}
	if (last)
		last->next = NULL;
	else
		mail->taken = NULL;
	if (!letter)
		mail->last = NULL;
	mail->count -= n;
	atomic_store(&mail->first, letter);
	vb_lock_drop(&mail->lock);
	return n;
}

void vb_mail_fini(struct vb_mail *mail)
{
	letters_free(mail->taken);
	letters_free(atomic_load(&mail->first));
	vb_lock_fini(&mail->lock);
}
