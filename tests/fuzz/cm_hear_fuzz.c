/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any octets as MADs for a connection manager that has ids in all sorts of states. The first octet
 * of the message's private data says what is made to fit before it is heard, since nobody would
 * guess ids and transactions.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cm/cm.h"
#include "cm/hear.h"
#include "cm/id.h"
#include "cm/nobody.h"
#include "cm/say.h"
#include "fuzz.h"

enum { IDS = 5, SERVICE = 0x01060001, SECOND = 1000000000 };

static struct vb_cm cm;
static struct vb_cm_id *ids[IDS];
static unsigned blocks, came;
static const struct vb_path path = {.src[15] = 1, .dst[15] = 2};

static void host_send(void *arg, const struct vb_path *to, const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_cm_msg msg;

	(void)arg;
	(void)to;
	vb_check(vb_cm_parse(&msg, mad));
}

static void host_event(void *arg, struct vb_cm_id *id, const struct vb_cm_event *event)
{
	(void)arg;
	(void)id;
	vb_check(event->type != VB_CM_EVENT_NONE);
	came++;
}

static void *host_alloc(void *arg, size_t bytes)
{
	(void)arg;
	blocks++;
	return calloc(1, bytes);
}

static void host_release(void *arg, void *memory)
{
	(void)arg;
	blocks--;
	free(memory);
}

static void hear(struct vb_cm_msg *msg)
{
	uint8_t mad[VB_MAD_BYTES];

	vb_cm_emit(msg, mad);
	vb_cm_hear(&cm, SECOND, &path, mad);
}

static struct vb_cm_id *ask(enum vb_cm_attr attr, uint32_t qpn)
{
	const struct vb_cm_ask ask = {
		.path = {.src[15] = 2, .dst[15] = 1},
		.timeout_ns = SECOND,
		.retries = 1,
	};
	struct vb_cm_msg msg = {.attr = attr};
	struct vb_cm_id *id = vb_cm_id_make(&cm, NULL);

	if (attr == VB_CM_REQ)
		msg.req.local_qpn = qpn;
	vb_check(vb_cm_say_ask(id, SECOND, &msg, &ask) == 0);
	return id;
}

/* Idle, two that ask, one that was asked, one that is connected. */
static void world_make(void)
{
	static const struct vb_cm_settings settings = {.guid = 1, .slot = 2, .secret = {3, 4}};
	static const struct vb_cm_host host = {
		.send = host_send,
		.event = host_event,
		.alloc = host_alloc,
		.release = host_release,
	};
	struct vb_cm_msg req = {.attr = VB_CM_REQ, .local_comm_id = 9}, rep, rtu;

	vb_cm_init(&cm, &settings, &host);
	ids[0] = vb_cm_id_make(&cm, NULL);
	vb_check(vb_cm_id_listen(ids[0], SERVICE, 4) == 0);
	ids[1] = ask(VB_CM_REQ, 5);
	ids[2] = ask(VB_CM_SIDR_REQ, 0);
	req.req.service_id = SERVICE;
	req.req.local_qpn = 77;
	hear(&req);
	ids[3] = TAILQ_LAST(&cm.ids, vb_cm_ids);
	ids[4] = ask(VB_CM_REQ, 6);
	rep = (struct vb_cm_msg){
		.attr = VB_CM_REP,
		.local_comm_id = 8,
		.remote_comm_id = ids[4]->local.id,
		.transaction_id = ids[4]->tid.connect,
		.rep.local_qpn = 78,
	};
	hear(&rep);
	rtu = (struct vb_cm_msg){.attr = VB_CM_RTU};
	vb_check(vb_cm_say(ids[4], SECOND, &rtu, NULL) == 0);
}

/* As if somebody knew. */
static void fit(struct vb_cm_msg *msg, uint8_t how)
{
	const struct vb_cm_id *id = ids[1 + how % (IDS - 1)];

	if (how & 0x80)
		return;
	if (msg->attr != VB_CM_REQ && msg->attr != VB_CM_SIDR_REQ)
		msg->remote_comm_id = id->local.id;
	if (how & 0x40 && id->remote.id)
		msg->local_comm_id = id->remote.id;
	if (how & 0x20)
		msg->transaction_id = id->tid.connect;
	if (how & 0x10 && msg->attr == VB_CM_DREQ)
		msg->dreq.remote_qpn = id->local.qpn;
	if (how & 0x10 && msg->attr == VB_CM_LAP)
		msg->lap.remote_qpn = id->local.qpn;
	if (how & 0x10 && msg->attr == VB_CM_REQ)
		msg->req.service_id = SERVICE;
}

static void take(const uint8_t *mad)
{
	struct vb_cm_msg msg;
	uint8_t answer[VB_MAD_BYTES];

	vb_cm_hear(&cm, SECOND, &path, mad);
	vb_cm_nobody_target(mad);
	if (vb_cm_nobody_answers_mad(answer, mad))
		vb_check(!vb_cm_nobody_answers_mad(answer, answer));
	if (!vb_cm_parse(&msg, mad))
		return;
	fit(&msg, msg.private_data[0]);
	hear(&msg);
	hear(&msg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	world_make();
	for (; bytes >= VB_MAD_BYTES; data += VB_MAD_BYTES, bytes -= VB_MAD_BYTES)
		take(data);
	/* All clocks run out in the end. */
	while (vb_cm_deadline_ns(&cm) != VB_CM_NEVER)
		vb_cm_turn(&cm, vb_cm_deadline_ns(&cm));
	vb_cm_fini(&cm);
	vb_check(blocks == 0);
	return 0;
}
