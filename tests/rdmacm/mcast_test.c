/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

/* Multicast groups, joined by ids. By IPv4: to one of IPv6 the kernel has no way on loopback. */

enum { OTHER_PORT = 4711 };

/* Two ids of datagrams, each with a channel and a QP. */
struct members {
	struct rdma_event_channel *channels[2];
	struct rdma_cm_id *ids[2];
	struct ibv_mr *mrs[2];
	uint8_t octets[2][64];
};

static struct sockaddr *group(void)
{
	return ct_addr_of("239.1.2.3", 0);
}

static void begin(struct members *m)
{
	for (int i = 0; i < 2; i++) {
		m->channels[i] = ct_channel();
		m->ids[i] = ct_id(m->channels[i], RDMA_PS_UDP);
		ct_works(rdma_bind_addr(m->ids[i], ct_addr(0)));
		/* Loopback is no device yet: a resolved address is. */
		ct_works(rdma_resolve_addr(m->ids[i], NULL, ct_addr(OTHER_PORT), CT_RESOLVE_MS));
		ct_pass(m->channels[i], RDMA_CM_EVENT_ADDR_RESOLVED);
		ct_qp(m->ids[i]);
		m->mrs[i] = rdma_reg_msgs(m->ids[i], m->octets[i], sizeof(m->octets[i]));
		assert_non_null(m->mrs[i]);
	}
}

static void end(struct members *m)
{
	for (int i = 0; i < 2; i++) {
		ct_works(rdma_dereg_mr(m->mrs[i]));
		rdma_destroy_qp(m->ids[i]);
		ct_works(rdma_destroy_id(m->ids[i]));
		ct_no_event(m->channels[i]);
		rdma_destroy_event_channel(m->channels[i]);
	}
}

/* What the event says of how to send to the group. */
static struct ibv_ah *joined(struct members *m, int i, void *context)
{
	struct rdma_cm_event *event = ct_event(m->channels[i], RDMA_CM_EVENT_MULTICAST_JOIN);
	struct ibv_ah *ah = ibv_create_ah(m->ids[i]->pd, &event->param.ud.ah_attr);

	assert_non_null(ah);
	assert_int_equal(event->status, 0);
	assert_ptr_equal(event->param.ud.private_data, context);
	assert_int_equal(event->param.ud.qp_num, 0xffffff);
	assert_int_equal(event->param.ud.qkey, RDMA_UDP_QKEY);
	ct_works(rdma_ack_cm_event(event));
	return ah;
}

/* Does the kernel say to the network that somebody here is a member? It writes 239.1.2.3 so. */
static bool is_reported(void)
{
	FILE *file = fopen("/proc/net/igmp", "r");
	char line[128];
	bool is = false;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		is |= strstr(line, "030201EF") != NULL;
	fclose(file);
	return is;
}

static void await(struct members *m, int i)
{
	ct_works(rdma_post_recv(m->ids[i], NULL, m->octets[i], sizeof(m->octets[i]), m->mrs[i]));
}

static void tell(struct members *m, int i, struct ibv_ah *ah, const char *words)
{
	struct ibv_wc wc;

	ct_works(rdma_post_ud_send(m->ids[i], NULL, (void *)words, strlen(words) + 1, NULL,
				   IBV_SEND_INLINE, ah, 0xffffff));
	assert_int_equal(rdma_get_send_comp(m->ids[i], &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void hears(struct members *m, int i, const char *words)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(m->ids[i], &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal((char *)m->octets[i] + 40, words);
}

/*
 * rdma_join_multicast: "Joins a multicast group and attaches an associated QP to the group."
 * rdma_join_multicast: "Returns 0 on success, or -1 on error."
 * rdma_join_multicast: "if a QP is associated with the rdma_cm_id, it is automatically attached to
 * the multicast group when the multicast event is retrieved by the user"
 * rdma_join_multicast: "The join context is returned to the user through the private_data field in
 * the rdma_cm_event."
 * rdma_leave_multicast: "Leaves a multicast group and detaches an associated QP from the group."
 * rdma_leave_multicast: "Returns 0 on success, or -1 on error."
 * rdma_get_cm_event: "The multicast join operation (rdma_join_multicast) completed successfully."
 * rdma_join_multicast: "The user must call rdma_leave_multicast to leave the multicast group and
 * release any multicast resources."
 * rdma_join_multicast: "After the join operation completes"
 */
static void members_hear_what_is_sent(void **state)
{
	struct members m;
	struct ibv_ah *ah[2];
	struct ibv_wc wc;

	begin(&m);
	for (int i = 0; i < 2; i++) {
		ct_works(rdma_join_multicast(m.ids[i], group(), &m.octets[i]));
		ah[i] = joined(&m, i, &m.octets[i]);
	}
	await(&m, 1);
	tell(&m, 0, ah[0], "to all");
	hears(&m, 1, "to all");
	/* Who has left hears nothing. */
	ct_works(rdma_leave_multicast(m.ids[1], group()));
	await(&m, 1);
	await(&m, 0);
	tell(&m, 0, ah[0], "to the rest");
	hears(&m, 0, "to the rest");
	assert_int_equal(ibv_poll_cq(m.ids[1]->recv_cq, 1, &wc), 0);
	ct_works(rdma_leave_multicast(m.ids[0], group()));
	ct_works(ibv_destroy_ah(ah[0]));
	ct_works(ibv_destroy_ah(ah[1]));
	end(&m);
}

/*
 * rdma_join_multicast_ex: "Joins a multicast group (MCG) with extended options."
 * rdma_join_multicast_ex: "Create multicast group, Send multicast messages to MCG, Receive
 * multicast messages from MCG."
 * rdma_join_multicast_ex: "Create multicast group, Send multicast messages to MCG, Don't receive
 * multicast messages from MCG (send-only)."
 * rdma_join_multicast_ex: "is used the QP will not be attached to the MCG."
 * rdma_join_multicast_ex: "Currently supporting MC join with a specified join flag. The supported
 * join flags are:"
 * rdma_join_multicast_ex: "Initiating a MC join as Send Only Full Member on RoCEv2/ETH will not
 * send any IGMP messages unlike a Full Member MC join."
 * rdma_join_multicast_ex: "Returns 0 on success, or -1 on error."
 * rdma_join_multicast_ex: "The user must call rdma_leave_multicast to leave the multicast group
 * and release any multicast resources."
 * rdma_join_multicast_ex: "After the join operation completes, if a QP is associated with the
 * rdma_cm_id, it is automatically attached to the multicast group when the multicast event is
 * retrieved by the user."
 * rdma_join_multicast_ex: "The join context is returned to the user through the private_data field
 * in the rdma_cm_event."
 * rdma_join_multicast_ex: "When Send Only Full Member"
 */
static void who_only_sends_does_not_hear(void **state)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
	};
	struct members m;
	struct ibv_ah *ah[2];
	struct ibv_wc wc;

	begin(&m);
	for (int i = 0; i < 2; i++) {
		attr.addr = group();
		attr.join_flags = i ? RDMA_MC_JOIN_FLAG_FULLMEMBER
				    : RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
		ct_works(rdma_join_multicast_ex(m.ids[i], &attr, NULL));
		ah[i] = joined(&m, i, NULL);
		assert_int_equal(is_reported(), i);
		await(&m, i);
	}
	tell(&m, 0, ah[0], "to you");
	hears(&m, 1, "to you");
	assert_int_equal(ibv_poll_cq(m.ids[0]->recv_cq, 1, &wc), 0);
	for (int i = 0; i < 2; i++) {
		ct_works(rdma_leave_multicast(m.ids[i], group()));
		ct_works(ibv_destroy_ah(ah[i]));
	}
	end(&m);
}

/*
 * rdma_join_multicast: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_join_multicast: "Before joining a multicast group, the rdma_cm_id must be bound to an RDMA
 * device by calling rdma_bind_addr or rdma_resolve_addr."
 * rdma_join_multicast_ex: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_leave_multicast: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_join_multicast_ex: "Before joining a multicast group, the rdma_cm_id must be bound to an
 * RDMA device by calling rdma_bind_addr or rdma_resolve_addr."
 */
static void what_is_no_group_is_not_joined(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *nowhere = ct_id(channel, RDMA_PS_UDP);
	struct rdma_cm_id *connects = ct_client(channel, RDMA_PS_TCP, OTHER_PORT);
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 0 };
	struct members m;

	begin(&m);
	ct_fails(rdma_join_multicast(nowhere, group(), NULL), EINVAL);
	ct_fails(rdma_join_multicast(connects, group(), NULL), EINVAL);
	ct_fails(rdma_join_multicast(m.ids[0], ct_addr(0), NULL), EINVAL);
	ct_fails(rdma_join_multicast(m.ids[0], NULL, NULL), EINVAL);
	ct_fails(rdma_join_multicast_ex(m.ids[0], NULL, NULL), EINVAL);
	attr.addr = group();
	ct_fails(rdma_join_multicast_ex(m.ids[0], &attr, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_RESERVED;
	ct_fails(rdma_join_multicast_ex(m.ids[0], &attr, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	ct_fails(rdma_join_multicast_ex(m.ids[0], &attr, NULL), EINVAL);
	ct_fails(rdma_leave_multicast(m.ids[0], group()), EADDRNOTAVAIL);
	ct_fails(rdma_leave_multicast(m.ids[0], NULL), EINVAL);
	end(&m);
	ct_works(rdma_destroy_id(nowhere));
	ct_works(rdma_destroy_id(connects));
	rdma_destroy_event_channel(channel);
}

/*
 * rdma_leave_multicast: "Calling this function before a group has been fully joined results in
 * canceling the join operation."
 * rdma_leave_multicast: "Destroying an rdma_cm_id will automatically leave all multicast groups."
 */
static void who_leaves_at_once_was_never_there(void **state)
{
	struct members m;
	struct ibv_wc wc;
	struct ibv_ah *ah;

	begin(&m);
	ct_works(rdma_join_multicast(m.ids[1], group(), NULL));
	ct_works(rdma_leave_multicast(m.ids[1], group()));
	ct_works(rdma_join_multicast(m.ids[0], group(), NULL));
	ah = joined(&m, 0, NULL);
	await(&m, 0);
	await(&m, 1);
	tell(&m, 0, ah, "to me");
	hears(&m, 0, "to me");
	assert_int_equal(ibv_poll_cq(m.ids[1]->recv_cq, 1, &wc), 0);
	ct_works(ibv_destroy_ah(ah));
	/* The group is left with its QP, and with its id. */
	ct_works(rdma_leave_multicast(m.ids[0], group()));
	ct_works(rdma_join_multicast(m.ids[0], group(), NULL));
	end(&m);
}

/*
 * rdma_join_multicast*: "Otherwise, the user is responsible for calling ibv_attach_mcast to bind
 * the QP to the multicast group."
 */
static void who_brings_a_qp_attaches_it_himself(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_UDP, OTHER_PORT);
	struct rdma_cm_event *event;
	union ibv_gid mgid;

	ct_works(rdma_join_multicast(id, group(), NULL));
	event = ct_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	mgid = event->param.ud.ah_attr.grh.dgid;
	ct_works(rdma_ack_cm_event(event));
	assert_false(is_reported());
	ct_qp(id);
	ct_works(ibv_attach_mcast(id->qp, &mgid, 0));
	assert_true(is_reported());
	/* It is the program's to detach as well. */
	ct_works(rdma_leave_multicast(id, group()));
	ct_works(ibv_detach_mcast(id->qp, &mgid, 0));
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest mcast[] = {
		cmocka_unit_test(members_hear_what_is_sent),
		cmocka_unit_test(who_only_sends_does_not_hear),
		cmocka_unit_test(what_is_no_group_is_not_joined),
		cmocka_unit_test(who_leaves_at_once_was_never_there),
		cmocka_unit_test(who_brings_a_qp_attaches_it_himself),
	};

	return ct_main(mcast);
}
