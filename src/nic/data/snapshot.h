/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SNAPSHOT_H
#define VB_NIC_SNAPSHOT_H

/*
 * A buffer is the NIC's until its send completes (ibv_post_send(3)). But a device reads what a
 * datagram sends within microseconds, and programs count on that: UCX takes its buffer back when
 * the peer shows by a message of its own that it needs the datagram no more. So the payload of a
 * datagram that has to wait until the hub answers (way.h) is copied.
 *
 * The copies lie in one block per QP, made when the first datagram waits, with room for each place
 * of the send queue. Without memory for it, datagrams wait as they are.
 */

struct vb_qp;

/* Copy all that waits in a UD QP's send queue. A payload no key leads to stays, and fails later. */
void vb_snapshots_take(struct vb_qp *qp);

#endif
