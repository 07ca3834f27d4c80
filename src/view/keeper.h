/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_VIEW_KEEPER_H
#define VB_VIEW_KEEPER_H

/*
 * The process that makes a tree (files.h), and keeps its files true while programs use it. It
 * leaves some seconds after its last user.
 */

/* listen_fd: where it is asked (lease.h). Returns an exit status. */
int vb_view_keep(int listen_fd);

#endif
