/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_NIC_NAMES_H
#define VB_NIC_NAMES_H

/* The names that users know: those of <infiniband/verbs.h>. Pure: any thread. */

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* "INIT"; "?" if there is no such state. */
const char *vb_state_name(enum ibv_qp_state state);

/* "IBV_WR_SEND"; "an unknown opcode" */
const char *vb_opcode_name(unsigned opcode);

/* "IBV_WC_REM_ACCESS_ERR"; "?" */
const char *vb_status_name(enum ibv_wc_status status);

/* "IBV_EVENT_QP_FATAL"; "?" */
const char *vb_event_name(enum ibv_event_type type);

/* Is its element a QP? */
bool vb_event_is_of_qp(enum ibv_event_type type);

/*
 * The bits of a mask by name, "IBV_QP_AV | IBV_QP_PATH_MTU"; bits without a name in hexadecimal.
 * Returns text.
 */
const char *vb_attr_mask_names(char *text, size_t bytes, int mask);
const char *vb_access_names(char *text, size_t bytes, unsigned access);

#endif
