/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>

/* Queue pairs and SRQs of ids, and what brings others' through their states. */

static struct rdma_event_channel *channel;

static int setup(void **state)
{
	channel = ct_channel();
	return 0;
}

static int teardown(void **state)
{
	ct_no_event(channel);
	rdma_destroy_event_channel(channel);
	return 0;
}

static struct rdma_cm_id *at_device(enum rdma_port_space ps)
{
	return ct_client(channel, ps, 7471);
}

/*
 * rdma_create_qp: "Allocate a QP associated with the specified rdma_cm_id and transition it for
 * sending and receiving."
 * rdma_create_qp: "QPs allocated to an rdma_cm_id are automatically transitioned by the librdmacm
 * through their states. After being allocated, the QP will be ready to handle posting of receives."
 * rdma_create_qp: "The actual capabilities and properties of the created QP will be returned to the
 * user through the qp_init_attr parameter."
 * rdma_create_qp: "Returns 0 on success, or -1 on error."
 * rdma_destroy_qp: "Destroy a QP allocated on the rdma_cm_id."
 * rdma_create_qp: "The initial QP attributes are specified by the qp_init_attr parameter."
 */
static void a_connected_one_takes_receives(void **state)
{
	struct rdma_cm_id *id = at_device(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = ct_qp_attr();
	uint8_t octets[16];
	struct ibv_mr *mr;

	ct_works(rdma_create_qp(id, NULL, &attr));
	assert_int_equal(ct_qp_state(id), IBV_QPS_INIT);
	assert_true(attr.cap.max_send_wr >= 8 && attr.cap.max_recv_wr >= 8);
	assert_true(attr.cap.max_inline_data >= 16);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	mr = rdma_reg_msgs(id, octets, sizeof(octets));
	ct_works(rdma_post_recv(id, NULL, octets, sizeof(octets), mr));
	rdma_destroy_qp(id);
	assert_null(id->qp);
	ct_works(rdma_dereg_mr(mr));
	/* Another may take its place. */
	ct_qp(id);
	rdma_destroy_qp(id);
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
}

/* rdma_create_qp: "If the QP is unconnected, it will be ready to post sends." */
static void an_unconnected_one_sends(void **state)
{
	struct rdma_cm_id *id = at_device(RDMA_PS_UDP);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ct_qp(id);
	assert_int_equal(ct_qp_state(id), IBV_QPS_RTS);
	ct_works(ibv_query_qp(id->qp, &attr, IBV_QP_QKEY, &init));
	assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_create_qp: "The rdma_cm_id must be bound to a local RDMA device before calling this
 * function, and the protection domain must be for that same device."
 * rdma_create_qp: "An rdma_cm_id may only be associated with a single QP."
 * rdma_create_qp: "If an error occurs, errno will be set to indicate the failure reason."
 * rdma_create_srq: "and the protection domain, if provided, must be for that same device"
 */
static void what_cannot_be_is_refused(void **state)
{
	struct rdma_cm_id *nowhere = ct_id(channel, RDMA_PS_TCP), *id = at_device(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct ibv_context *other = ibv_open_device(id->verbs->device);
	struct ibv_pd *pd = ibv_alloc_pd(other);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };

	ct_fails(rdma_create_qp(nowhere, NULL, &attr), EINVAL);
	ct_works(rdma_bind_addr(nowhere, ct_any(0)));
	ct_fails(rdma_create_qp(nowhere, NULL, &attr), EINVAL);
	ct_fails(rdma_create_qp(id, pd, &attr), EINVAL);
	ct_fails(rdma_create_srq(id, pd, &srq), EINVAL);
	assert_null(id->srq);
	attr.qp_type = IBV_QPT_UD;
	ct_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	assert_null(id->qp);
	assert_null(id->send_cq);
	attr = ct_qp_attr();
	attr.cap.max_send_sge = UINT32_MAX;
	assert_int_equal(rdma_create_qp(id, NULL, &attr), -1);
	assert_null(id->qp);
	assert_null(id->send_cq);
	ct_qp(id);
	attr = ct_qp_attr();
	ct_fails(rdma_create_qp(id, NULL, &attr), EINVAL);
	rdma_destroy_qp(id);
	ct_works(ibv_dealloc_pd(pd));
	ct_works(ibv_close_device(other));
	ct_works(rdma_destroy_id(nowhere));
	ct_works(rdma_destroy_id(id));
}

/*
 * rdma_create_qp: "One default protection domain is allocated per RDMA device."
 * rdma_create_srq: "One default protection domain is allocated per RDMA device."
 * rdma_create_qp: "If a protection domain is not given - pd parameter is NULL - then the
 * rdma_cm_id will be created using a default protection domain."
 * rdma_create_srq: "If a protection domain is not given - pd parameter is NULL - then the
 * rdma_cm_id will be created using a default protection domain."
 */
static void without_a_pd_it_is_that_of_all(void **state)
{
	struct rdma_cm_id *one = at_device(RDMA_PS_TCP), *other = at_device(RDMA_PS_UDP);
	struct ibv_pd *pd = ibv_alloc_pd(one->verbs);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = ct_qp_attr();

	ct_qp(one);
	ct_qp(other);
	assert_ptr_equal(one->qp->pd, other->qp->pd);
	rdma_destroy_qp(one);
	ct_works(rdma_create_srq(one, NULL, &srq));
	assert_ptr_equal(one->srq->pd, other->qp->pd);
	rdma_destroy_srq(one);
	ct_works(rdma_create_qp(one, pd, &attr));
	assert_ptr_equal(one->qp->pd, pd);
	rdma_destroy_qp(one);
	ct_works(ibv_dealloc_pd(pd));
	rdma_destroy_qp(other);
	ct_works(rdma_destroy_id(one));
	ct_works(rdma_destroy_id(other));
}

/*
 * rdma_create_qp: "If a send or receive completion queue is not specified, then a CQ will be
 * allocated by the rdma_cm for the QP, along with corresponding completion channels. Completion
 * channels and CQ data created by the rdma_cm are exposed to the user through the rdma_cm_id
 * structure."
 * rdma_create_qp: "The send_cq and recv_cq fields in the ibv_qp_init_attr are optional."
 */
static void cqs_are_made_if_there_are_none(void **state)
{
	struct rdma_cm_id *id = at_device(RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);

	ct_qp(id);
	assert_ptr_equal(id->qp->send_cq, id->send_cq);
	assert_ptr_equal(id->qp->recv_cq, id->recv_cq);
	assert_ptr_equal(id->send_cq->cq_context, id);
	assert_ptr_equal(id->recv_cq->cq_context, id);
	assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
	assert_ptr_equal(id->recv_cq->channel, id->recv_cq_channel);
	rdma_destroy_qp(id);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);
	attr.send_cq = attr.recv_cq = cq;
	ct_works(rdma_create_qp(id, NULL, &attr));
	assert_ptr_equal(id->qp->send_cq, cq);
	assert_ptr_equal(id->qp->recv_cq, cq);
	assert_null(id->send_cq_channel);
	assert_null(id->recv_cq_channel);
	rdma_destroy_qp(id);
	ct_works(ibv_destroy_cq(cq));
	ct_works(rdma_destroy_id(id));
}

/* --- SRQs --- */

/*
 * rdma_create_srq: "Allocate a SRQ associated with the specified rdma_cm_id."
 * rdma_create_srq: "After being allocated, the SRQ will be ready to handle posting of receives."
 * rdma_create_srq: "An rdma_cm_id may only be associated with a single SRQ."
 * rdma_create_srq: "Returns 0 on success, or -1 on error. If an error occurs, errno will be set to
 * indicate the failure reason."
 * rdma_create_srq: "The rdma_cm_id must be bound to a local RDMA device before calling this
 * function"
 * rdma_create_srq: "The actual capabilities and properties of the created SRQ will be returned to
 * the user through the attr parameter."
 * rdma_destroy_srq: "Destroy an SRQ allocated on the rdma_cm_id."
 * rdma_create_srq: "The initial SRQ attributes are specified by the attr parameter."
 */
static void an_srq_is_the_qps(void **state)
{
	struct rdma_cm_id *nowhere = ct_id(channel, RDMA_PS_TCP), *id = at_device(RDMA_PS_TCP);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	uint8_t octets[16];
	struct ibv_mr *mr = rdma_reg_msgs(id, octets, sizeof(octets));

	ct_fails(rdma_create_srq(nowhere, NULL, &attr), EINVAL);
	ct_works(rdma_create_srq(id, NULL, &attr));
	assert_true(attr.attr.max_wr >= 4);
	ct_fails(rdma_create_srq(id, NULL, &attr), EINVAL);
	/* rdma_post_recv() posts to it. */
	ct_works(rdma_post_recv(id, NULL, octets, sizeof(octets), mr));
	ct_qp(id);
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	rdma_destroy_srq(id);
	ct_works(rdma_dereg_mr(mr));
	ct_works(rdma_destroy_id(nowhere));
	ct_works(rdma_destroy_id(id));
}

/* --- other types than RC --- */

static struct rdma_cm_id *endpoint(enum ibv_qp_type type, bool passive, uint16_t port)
{
	const struct rdma_addrinfo hints = {
		.ai_flags = passive ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_IB,
		.ai_qp_type = type,
	};
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	ct_works(rdma_getaddrinfo(ct_ip(), service, &hints, &res));
	ct_works(rdma_create_ep(&id, res, NULL, &attr));
	rdma_freeaddrinfo(res);
	return id;
}

static struct rdma_cm_id *xrc_endpoint(bool passive, uint16_t port)
{
	return endpoint(passive ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND, passive, port);
}

static void *connect_to(void *arg)
{
	ct_works(rdma_connect(arg, NULL));
	return NULL;
}

static void xrc_send(struct rdma_cm_id *client, uint32_t srqn)
{
	struct ibv_sge sge = { .addr = (uintptr_t)"good evening", .length = 13 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE,
				  .qp_type.xrc.remote_srqn = srqn };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	ct_works(ibv_post_send(client->qp, &wr, &bad));
	assert_int_equal(rdma_get_send_comp(client, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/*
 * rdma_create_srq: "If a completion queue is not specified for an XRC SRQ, then a CQ will be
 * allocated by the rdma_cm for the SRQ, along with corresponding completion channels. Completion
 * channels and CQ data created by the rdma_cm are exposed to the user through the rdma_cm_id
 * structure."
 * rdma_create_srq: "The ext.xrc.cq fields in the ibv_srq_init_attr is optional."
 */
static void xrc_sends_to_the_srq_of_an_id(void **state)
{
	struct rdma_cm_id *listener = xrc_endpoint(true, 0), *client, *server;
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_conn_param param = { .retry_count = 7 };
	uint8_t octets[16] = { 0 };
	struct ibv_mr *mr;
	struct ibv_wc wc;
	pthread_t thread;
	uint32_t srqn;

	ct_works(rdma_listen(listener, 0));
	client = xrc_endpoint(false, ct_src_port(listener));
	ct_works(pthread_create(&thread, NULL, connect_to, client));
	ct_works(rdma_get_request(listener, &server));
	assert_int_equal(server->qp_type, IBV_QPT_XRC_RECV);
	assert_int_equal(server->qp->qp_type, IBV_QPT_XRC_RECV);
	ct_works(rdma_create_srq(server, NULL, &attr));
	assert_non_null(server->recv_cq);
	assert_non_null(server->recv_cq_channel);
	ct_works(ibv_get_srq_num(server->srq, &srqn));
	mr = rdma_reg_msgs(server, octets, sizeof(octets));
	ct_works(rdma_post_recv(server, NULL, octets, sizeof(octets), mr));
	param.private_data = &srqn;
	param.private_data_len = sizeof(srqn);
	ct_works(rdma_accept(server, &param));
	pthread_join(thread, NULL);
	memcpy(&srqn, client->event->param.conn.private_data, sizeof(srqn));
	xrc_send(client, srqn);
	assert_int_equal(rdma_get_recv_comp(server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal((char *)octets, "good evening");
	ct_works(rdma_dereg_mr(mr));
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
}

static void xrc_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = type, .sq_sig_all = 1 };

	attr.cap = ct_qp_attr().cap;
	ct_works(rdma_create_qp_ex(id, &attr));
	assert_int_equal(id->qp->qp_type, type);
}

/* "Reliable" is what the ids say; the QPs that libfabric gives them are of XRC. */
static void xrc_goes_over_the_port_space_of_tcp(void **state)
{
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP), *server;
	struct rdma_cm_id *client = ct_client(channel, RDMA_PS_TCP, ct_src_port(listener));
	struct ibv_srq_init_attr_ex attr = { .attr = { .max_wr = 4, .max_sge = 1 },
					     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
					     .srq_type = IBV_SRQT_XRC };
	struct rdma_cm_event *event;
	uint8_t octets[16] = { 0 };
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t srqn;

	xrc_qp(client, IBV_QPT_XRC_SEND);
	ct_works(rdma_connect(client, NULL));
	event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	ct_works(rdma_ack_cm_event(event));
	xrc_qp(server, IBV_QPT_XRC_RECV);
	ct_works(rdma_create_srq_ex(server, &attr));
	ct_works(ibv_get_srq_num(server->srq, &srqn));
	mr = rdma_reg_msgs(server, octets, sizeof(octets));
	ct_works(rdma_post_recv(server, NULL, octets, sizeof(octets), mr));
	ct_works(rdma_accept(server, NULL));
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	xrc_send(client, srqn);
	assert_int_equal(rdma_get_recv_comp(server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal((char *)octets, "good evening");
	ct_works(rdma_dereg_mr(mr));
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);
	ct_works(rdma_destroy_id(listener));
}

static void unreliable_ones_connect(void **state)
{
	struct rdma_cm_id *listener = endpoint(IBV_QPT_UC, true, 0), *client, *server;
	uint8_t octets[16] = { 0 };
	struct ibv_mr *mr;
	struct ibv_wc wc;
	pthread_t thread;

	ct_works(rdma_listen(listener, 0));
	client = endpoint(IBV_QPT_UC, false, ct_src_port(listener));
	ct_works(pthread_create(&thread, NULL, connect_to, client));
	ct_works(rdma_get_request(listener, &server));
	assert_int_equal(server->qp->qp_type, IBV_QPT_UC);
	mr = rdma_reg_msgs(server, octets, sizeof(octets));
	ct_works(rdma_post_recv(server, NULL, octets, sizeof(octets), mr));
	ct_works(rdma_accept(server, NULL));
	pthread_join(thread, NULL);
	ct_works(rdma_post_send(client, NULL, "good evening", 13, NULL, IBV_SEND_INLINE));
	assert_int_equal(rdma_get_recv_comp(server, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_string_equal((char *)octets, "good evening");
	ct_works(rdma_dereg_mr(mr));
	rdma_destroy_ep(client);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
}

/* What is asked for has to be what the listener has. */
static void one_type_does_not_connect_to_another(void **state)
{
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_IB);
	struct rdma_cm_id *client = xrc_endpoint(false, ct_src_port(listener));

	ct_fails(rdma_connect(client, NULL), ECONNREFUSED);
	rdma_destroy_ep(client);
	ct_works(rdma_destroy_id(listener));
}

/* --- QPs that are not the id's --- */

static void climb(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;

	ct_works(rdma_init_qp_attr(id, &attr, &mask));
	assert_int_equal(attr.qp_state, state);
	assert_true(mask & IBV_QP_STATE);
	ct_works(ibv_modify_qp(qp, &attr, mask));
}

static struct ibv_qp *own_qp(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = ct_qp_attr();
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(id->pd, &attr);
	assert_non_null(qp);
	return qp;
}

/*
 * rdma_init_qp_attr: "rdma_init_qp_attr() returns qp attributes of an rdma_cm_id."
 * rdma_init_qp_attr: "Information about qp attributes and qp attributes mask is returned through
 * the qp_attr and qp_attr_mask parameters."
 * rdma_establish: "Acknowledge an incoming connection response event and complete the connection
 * establishment."
 * rdma_establish: "If a QP has not been created on the rdma_cm_id, this function should be called
 * by the active side to complete the connection, after getting connect response event."
 * rdma_establish: "This will trigger a connection established event on the passive side."
 */
static void who_brings_a_qp_learns_its_attributes(void **state)
{
	struct rdma_cm_id *listener = ct_listener(channel, RDMA_PS_TCP), *server;
	struct rdma_cm_id *client = ct_client(channel, RDMA_PS_TCP, ct_src_port(listener));
	struct ibv_cq *cq = ibv_create_cq(client->verbs, 16, NULL, NULL, 0);
	struct ibv_qp *ours = own_qp(client, cq), *theirs = own_qp(client, cq);
	struct rdma_conn_param param = { .qp_num = ours->qp_num, .retry_count = 7 };
	struct ibv_sge sge = { .addr = (uintptr_t)"x", .length = 1 };
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
				    .num_sge = 0, .sg_list = &sge }, *bad;
	struct rdma_cm_event *event;
	struct ibv_wc wc;

	climb(client, ours, IBV_QPS_INIT);
	ct_works(rdma_connect(client, &param));
	event = ct_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	climb(server, theirs, IBV_QPS_INIT);
	climb(server, theirs, IBV_QPS_RTR);
	climb(server, theirs, IBV_QPS_RTS);
	ct_works(ibv_post_recv(theirs, &recv, &bad_recv));
	ct_works(rdma_ack_cm_event(event));
	param.qp_num = theirs->qp_num;
	ct_works(rdma_accept(server, &param));
	ct_pass(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	climb(client, ours, IBV_QPS_RTR);
	climb(client, ours, IBV_QPS_RTS);
	ct_works(rdma_establish(client));
	ct_pass(channel, RDMA_CM_EVENT_ESTABLISHED);
	ct_works(ibv_post_send(ours, &send, &bad));
	for (int left = 2; left > 0;) {
		if (ibv_poll_cq(cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			left--;
		}
	}
	ct_works(rdma_disconnect(client));
	ct_pass(channel, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(rdma_disconnect(server));
	ct_pass(channel, RDMA_CM_EVENT_DISCONNECTED);
	ct_works(ibv_destroy_qp(ours));
	ct_works(ibv_destroy_qp(theirs));
	ct_works(ibv_destroy_cq(cq));
	ct_works(rdma_destroy_id(client));
	ct_works(rdma_destroy_id(server));
	ct_works(rdma_destroy_id(listener));
}

/*
 * rdma_init_qp_attr: "rdma_init_qp_attr() returns 0 on success, or -1 on error. If an error occurs,
 * errno will be set to indicate the failure reason."
 * rdma_establish: "This function should not be used on an rdma_cm_id on which a QP has been
 * created."
 * rdma_establish: "rdma_establish() returns 0 on success, or -1 on error. If an error occurs, errno
 * will be set to indicate the failure reason."
 */
static void what_is_not_known_is_not_told(void **state)
{
	struct rdma_cm_id *nowhere = ct_id(channel, RDMA_PS_TCP), *id = at_device(RDMA_PS_TCP);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	ct_fails(rdma_init_qp_attr(nowhere, &attr, &mask), EINVAL);
	ct_works(rdma_init_qp_attr(id, &attr, &mask));
	attr.qp_state = IBV_QPS_RTR;
	ct_fails(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	attr.qp_state = IBV_QPS_SQD;
	ct_fails(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
	ct_fails(rdma_establish(id), EINVAL);
	ct_qp(id);
	ct_fails(rdma_establish(id), EINVAL);
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(nowhere));
	ct_works(rdma_destroy_id(id));
}

#define qps_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest qps[] = {
		qps_test(a_connected_one_takes_receives),
		qps_test(an_unconnected_one_sends),
		qps_test(what_cannot_be_is_refused),
		qps_test(without_a_pd_it_is_that_of_all),
		qps_test(cqs_are_made_if_there_are_none),
		qps_test(an_srq_is_the_qps),
		qps_test(xrc_sends_to_the_srq_of_an_id),
		qps_test(xrc_goes_over_the_port_space_of_tcp),
		qps_test(unreliable_ones_connect),
		qps_test(one_type_does_not_connect_to_another),
		qps_test(who_brings_a_qp_learns_its_attributes),
		qps_test(what_is_not_known_is_not_told),
	};

	return ct_main(qps);
}
