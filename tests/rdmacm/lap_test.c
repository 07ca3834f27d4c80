/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <sys/socket.h>
#include <unistd.h>

#include "link/udp_one.h"
#include "wire/cm_msg.h"
#include "wire/mad_frame.h"

/*
 * A peer that asks for an alternate path (LAP), as no call of librdmacm does: this test says it in
 * the client's name, with what it has read of the two on the way.
 */

enum { UDP_BYTES = 8, IPV6_BYTES = 40 };

/* The next message of that kind, with the addresses of its packet in reverse. */
static struct vb_cm_msg hear(int fd, enum vb_cm_attr attr, struct vb_path *path)
{
	static uint8_t packet[2048];
	struct vb_cm_msg msg = {.attr = 0};

	while (msg.attr != attr) {
		ssize_t bytes = ct_readable(fd, CT_WAIT_MS) ? recv(fd, packet, sizeof(packet), 0)
							    : -1;
		bool ipv6 = packet[0] >> 4 == 6;
		size_t header = ipv6 ? IPV6_BYTES : (size_t)(packet[0] & 15) * 4;
		const uint8_t *mad;

		if (bytes < 0)
			fail_msg("message %#x does not come", attr);
		if (bytes != (ssize_t)(header + UDP_BYTES + VB_MAD_FRAME_BYTES))
			continue;
		mad = vb_mad_frame_parse(packet + header + UDP_BYTES, VB_MAD_FRAME_BYTES);
		if (!mad || !vb_cm_parse(&msg, mad))
			continue;
		*path = (struct vb_path){.hop_limit = 64};
		path->src[10] = path->src[11] = path->dst[10] = path->dst[11] = ipv6 ? 0 : 0xff;
		memcpy(path->src + (ipv6 ? 0 : 12), packet + (ipv6 ? 24 : 16), ipv6 ? 16 : 4);
		memcpy(path->dst + (ipv6 ? 0 : 12), packet + (ipv6 ? 8 : 12), ipv6 ? 16 : 4);
	}
	return msg;
}

/* From the place to which what was heard went, to the one from where it came. */
static void say(const struct vb_path *heard, const struct vb_cm_msg *msg)
{
	struct sockaddr *here = ct_addr(0);
	int fd = socket(here->sa_family, SOCK_DGRAM, 0);
	uint8_t mad[VB_MAD_BYTES], frame[VB_MAD_FRAME_BYTES];
	struct sockaddr_storage bound;
	socklen_t bytes = sizeof(bound);
	struct vb_path path = *heard;

	assert_int_equal(bind(fd, here, here->sa_family == AF_INET ? sizeof(struct sockaddr_in)
								    : sizeof(struct sockaddr_in6)),
			 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &bytes), 0);
	path.sport = ntohs(((struct sockaddr_in *)&bound)->sin_port);
	vb_cm_emit(msg, mad);
	vb_mad_frame_emit(frame, &path, mad, 0);
	assert_int_equal(vb_udp_one_send(fd, &path, frame, sizeof(frame)), 0);
	close(fd);
}

static void an_alternate_path_is_refused_at_once(void **state)
{
	int ear = ct_ear();
	struct vb_cm_msg req, rep, apr, lap = {.attr = VB_CM_LAP};
	struct ct_pair pair;
	struct vb_path path;

	assert_true(ear >= 0);
	ct_pair_open(&pair);
	req = hear(ear, VB_CM_REQ, &path);
	rep = hear(ear, VB_CM_REP, &path);
	lap.transaction_id = req.transaction_id + 1;
	lap.local_comm_id = req.local_comm_id;
	lap.remote_comm_id = rep.local_comm_id;
	lap.lap.remote_qpn = pair.server->qp->qp_num;
	memcpy(lap.lap.alternate.local_gid, path.src, VB_GID_BYTES);
	memcpy(lap.lap.alternate.remote_gid, path.dst, VB_GID_BYTES);
	say(&path, &lap);
	apr = hear(ear, VB_CM_APR, &path);
	assert_int_equal(apr.remote_comm_id, req.local_comm_id);
	assert_true(apr.transaction_id == lap.transaction_id);
	assert_int_equal(apr.apr.status, VB_CM_APR_UNSUPPORTED);
	/* Nothing has come of it: neither an event nor a path to change to. */
	ct_no_event(pair.at_server);
	ct_no_event(pair.at_client);
	ct_fails(rdma_notify(pair.server, IBV_EVENT_PATH_MIG), EINVAL);
	ct_exchange(pair.client, pair.server);
	ct_pair_part(&pair);
	ct_pair_close(&pair);
	close(ear);
}

int main(void)
{
	const struct CMUnitTest lap[] = {
		cmocka_unit_test(an_alternate_path_is_refused_at_once),
	};

	return ct_main(lap);
}
