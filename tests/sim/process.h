/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_SIM_PROCESS_H
#define VB_SIM_PROCESS_H

/*
 * What a process is beside its NIC: a thread that turns the NIC, sleeps and wakes, rings towards
 * others, bells, a place in their exports, and an end. All in virtual time, as src/run does it:
 *
 *	threaded	its application only posts and looks at its CQs; the thread does the rest
 *	not threaded	its application polls, and the thread naps meanwhile
 *
 * While there are faults, both are mixed, and bells come late or never. Once it is calm, they
 * behave, and then nothing may be forgotten: a frame or room for one in a ring towards a sleeper
 * must be followed by a bell, or by another look of whoever published it.
 *
 * A link that is `stale` shows its producer an old sleep epoch while the application posts, as a
 * store buffer may: only the looks behind a fence see the present one.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct node;
struct sim;
struct vb_peer;

/* From one node to another (or itself). */
struct link {
	bool open;  /* through a ring; otherwise by wire */
	bool stale;
	bool vm;    /* memory can be reached by system calls */
	bool made;
	bool told;  /* of the other's end */
	uint32_t start, data_start; /* of the ring's positions */
	struct vb_peer *peer; /* what it has of the other */
};

/* Before and after the NICs are made. */
void process_begin(struct sim *sim);
void process_links(struct sim *sim);

/* Between these two there shall be no ring. */
void process_by_wire(struct sim *sim, const struct node *a, const struct node *b);

/* Zeros for the NIC's export. */
void *process_export(struct node *node);

/* As in struct vb_nic_host. */
int process_reach(struct node *from, uint16_t slot);
void process_bell(struct node *from, struct vb_peer *peer);
void process_release(struct vb_peer *peer);
bool process_vm(struct node *from, const struct vb_peer *peer, uint64_t address,
		const struct iovec *iov, unsigned count, bool write);

/* When some thread does something next, a NIC's clock included; UINT64_MAX: never. */
uint64_t process_next_ns(const struct sim *sim);

/* Let threads do what is due. */
void process_step(struct sim *sim);

/* It hears of all rings that have come. */
void process_hear_rings(struct node *node);

/* Something has come from the wire. */
void process_wake(struct node *node);

/* The application polls; or has posted, and does something else now. */
void process_poll(struct node *node);
void process_rest(struct node *node);

/*
 * Behind a call in which the NIC has looked behind a fence (`dirty` is unset): it has seen there
 * who sleeps, although we show it what was so before.
 */
void process_fence(struct node *node);

/* No faults from now on. */
void process_calm(struct sim *sim);

/* Calm only: nothing lies about that nobody will look at. */
void process_check(struct sim *sim);

/* Is nothing under way any more? */
bool process_quiet(const struct sim *sim);

/* It ends here and now; others hear of it soon. */
void process_die(struct node *node);

#endif
