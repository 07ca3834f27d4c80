/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_DAEMON_ANSWERS_H
#define VB_DAEMON_ANSWERS_H

/*
 * The requests that any process of this user may make, for hub.c. These messages have no
 * descriptors.
 */

#include "daemon/hub_internal.h"

on_message vb_hub_answer_status;
on_message vb_hub_answer_stop;
on_message vb_hub_answer_fail;
on_message vb_hub_answer_capture;
on_message vb_hub_answer_who;
on_message vb_hub_answer_domains;
on_message vb_hub_answer_noted;
on_message vb_hub_answer_sample; /* has one: where the clients answer */

#endif
