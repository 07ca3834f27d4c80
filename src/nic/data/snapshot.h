/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_SNAPSHOT_H
#define VB_NIC_SNAPSHOT_H

/*
 * A buffer belongs to the NIC until its send completes (ibv_post_send(3)). But hardware reads a
 * datagram's payload within microseconds, and programs rely on it: UCX reuses its buffer when a
 * message from the peer shows that the datagram is no longer needed. So the payload of a datagram
 * that has to wait for the hub's answer (way.h) is copied.
 *
 * The copies are in one block per QP, made when the first datagram waits, with room for each place
 * of the send queue. Without memory for it, datagrams wait uncopied.
 */

struct vb_qp;

/*
 * Copies all payloads that wait in a UD QP's send queue. A payload without a valid key is not
 * copied, and fails later.
 */
void vb_snapshots_take(struct vb_qp *qp);

#endif
