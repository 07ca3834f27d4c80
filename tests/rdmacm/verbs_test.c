/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>

/*
 * The inline functions of <rdma/rdma_verbs.h>: registering, posting and waiting upon an id. A page
 * rdma_post_* stands for all pages of that name that say so.
 */

enum { BYTES = 64 };

static struct ct_pair pair;
static uint8_t of_client[BYTES], of_server[BYTES];

static int setup(void **state)
{
	ct_pair_open(&pair);
	for (int i = 0; i < BYTES; i++) {
		of_client[i] = (uint8_t)(i + 1);
		of_server[i] = (uint8_t)(0x80 + i);
	}
	return 0;
}

static int teardown(void **state)
{
	ct_pair_part(&pair);
	ct_pair_close(&pair);
	return 0;
}

/* The next completion of what was sent, or received. */
static struct ibv_wc sent(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_send_comp(id, &wc), 1);
	return wc;
}

static struct ibv_wc received(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
	return wc;
}

static struct ibv_sge piece(struct ibv_mr *mr, unsigned from, unsigned bytes)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr + from, bytes, mr->lkey };
}

/* --- messages --- */

/*
 * rdma_reg_msgs: "Registers an array of memory buffers used for sending and receiving messages or
 * for RDMA operations. Memory buffers registered using rdma_reg_msgs may be posted to an rdma_cm_id
 * using rdma_post_send or rdma_post_recv, or specified as the target of an RDMA read operation or
 * the source of an RDMA write request."
 * rdma_reg_*: "Returns a reference to the registered memory region on success, or NULL on error."
 * rdma_reg_*: "The memory buffer is registered with the proteection domain associated with the
 * idenfier."
 * rdma_reg_msgs: "The start of the data buffer array is specified through the addr parameter, and
 * the total size of the array is given by length."
 * rdma_reg_*: "All data buffers should be registered before being posted as a work request. Users
 * must deregister all registered memory by calling rdma_dereg_mr."
 * rdma_reg_msgs: "rdma_reg_msgs is used to register an array of data buffers that will be used send
 * and/or receive messages on a queue pair associated with an rdma_cm_id."
 * rdma_dereg_mr: "Deregisters a memory buffer that had been registered for RDMA or message
 * operations. A user should call rdma_dereg_mr for all registered memory associated with an
 * rdma_cm_id before destroying the rdma_cm_id."
 * rdma_dereg_mr: "Returns 0 on success, or -1 on error."
 * rdma_dereg_mr: "All memory registered with an rdma_cm_id is associated with the protection domain
 * associated with the id."
 * rdma_post_recv: "Posts a work request to the receive queue of the queue pair associated with the
 * rdma_cm_id. The posted buffer will be queued to receive an incoming message sent by the remote
 * peer."
 * rdma_post_recv*: "The user-defined context associated with the receive request will be returned
 * to the user through the work completion wr_id, work request identifier, field."
 * rdma_post_send: "The contents of the posted buffer will be sent to the remote peer of a
 * connection."
 * rdma_post_send*: "The user-defined context associated with the send request will be returned to
 * the user through the work completion wr_id, work request identifier, field."
 * rdma_post_*: "Posts a work request to the send queue of the queue pair associated with the
 * rdma_cm_id."
 * rdma_post_*: "Returns 0 on success, or -1 on error."
 * rdma_get_recv_comp: "Retrieves a completed work request for a receive operation. Information
 * about the completed request is returned through the wc parameter, with the wr_id set to the
 * context of the request."
 * rdma_get_send_comp: "Retrieves a completed work request for a send, RDMA read, or RDMA write
 * operation. Information about the completed request is returned through the wc parameter, with the
 * wr_id set to the context of the request."
 * rdma_get_*_comp: "Returns the number of returned completions (0 or 1) on success, or -1 on
 * error."
 * rdma_dereg_mr: "Users must deregister all registered memory before the protection domain can be
 * destroyed."
 * rdma_reg_*: "A reference to a communication identifier where the message buffer(s) will be used."
 * rdma_post_*: "A reference to a communication identifier where the message buffer will be
 * posted."
 * rdma_post_recvv: "A reference to a communication identifier where the message buffer(s) will be
 * posted."
 * rdma_post_*: "A reference to a communication identifier where the request will be posted."
 * rdma_get_*_comp: "This call should only be used on rdma_cm_id's that do not share CQs with other
 * rdma_cm_id's, and maintain separate CQs for sends and receive completions."
 * rdma_cm: "The rdma_cm supports the full range of verbs available through the libibverbs library
 * and interfaces. However, it also provides wrapper functions for some of the more commonly used
 * verbs funcationality. The full set of abstracted verb calls are: rdma_reg_msgs - register an
 * array of buffers for sending and receiving; rdma_dereg_mr - deregisters a memory region;
 * rdma_post_recv - post a buffer to receive a message; rdma_post_send - post a buffer to send a
 * message; rdma_get_send_comp - get completion status for a send or RDMA operation;
 * rdma_get_recv_comp - get information about a completed receive"
 * rdma_cm: "It works in conjunction with the verbs API defined by the libibverbs library. The
 * libibverbs library provides the underlying interfaces needed to send and receive data."
 * rdma_create_id: "Unlike TCP, the RDMA port space provides message, not stream, based
 * communication."
 */
static void messages_go_by_registered_memory(void **state)
{
	struct ibv_mr *from = rdma_reg_msgs(pair.client, of_client, BYTES);
	struct ibv_mr *to = rdma_reg_msgs(pair.server, of_server, BYTES);
	struct ibv_wc wc;
	int here, there;

	assert_non_null(from);
	assert_ptr_equal(from->pd, pair.client->pd);
	assert_ptr_equal(from->addr, of_client);
	assert_int_equal(from->length, BYTES);
	ct_works(rdma_post_recv(pair.server, &there, of_server + 8, BYTES - 8, to));
	ct_works(rdma_post_send(pair.client, &here, of_client, 32, from, 0));
	wc = sent(pair.client);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, (uintptr_t)&here);
	wc = received(pair.server);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, (uintptr_t)&there);
	assert_int_equal(wc.byte_len, 32);
	assert_memory_equal(of_server + 8, of_client, 32);
	ct_works(rdma_dereg_mr(from));
	ct_works(rdma_dereg_mr(to));
}

/*
 * rdma_post_recvv: "Posts a single work request to the receive queue of the queue pair associated
 * with the rdma_cm_id. The posted buffers will be queued to receive an incoming message sent by the
 * remote peer."
 * rdma_post_sendv: "The contents of the posted buffers will be sent to the remote peer of a
 * connection."
 * rdma_post_writev: "The contents of the local data buffers will be written into the remote memory
 * region."
 * rdma_post_readv: "The contents of the remote memory region will be read into the local data
 * buffers."
 * rdma_post_*v: "The number of scatter-gather array entries."
 * rdma_cm: "rdma_post_recvv - post a vector of buffers to receive a message; rdma_post_sendv -
 * post a vector of buffers to send a message; rdma_post_readv - post a vector of buffers to
 * receive an RDMA read; rdma_post_writev - post a vector of buffers to send an RDMA write"
 */
static void several_pieces_are_one_message(void **state)
{
	struct ibv_mr *from = rdma_reg_msgs(pair.client, of_client, BYTES);
	struct ibv_mr *to = rdma_reg_write(pair.server, of_server, BYTES);
	struct ibv_sge to_post = piece(to, 0, BYTES), one = piece(from, 4, 8);

	ct_works(rdma_post_recvv(pair.server, NULL, &to_post, 1));
	ct_works(rdma_post_sendv(pair.client, NULL, &one, 1, 0));
	assert_int_equal(sent(pair.client).status, IBV_WC_SUCCESS);
	assert_int_equal(received(pair.server).byte_len, 8);
	assert_memory_equal(of_server, of_client + 4, 8);
	ct_works(rdma_post_writev(pair.client, &one, &one, 1, 0, (uintptr_t)of_server + 20,
				  to->rkey));
	assert_int_equal(sent(pair.client).wr_id, (uintptr_t)&one);
	assert_memory_equal(of_server + 20, of_client + 4, 8);
	ct_works(rdma_dereg_mr(to));
	to = rdma_reg_read(pair.server, of_server, BYTES);
	one = piece(from, 40, 8);
	ct_works(rdma_post_readv(pair.client, &one, &one, 1, 0, (uintptr_t)of_server + 20,
				 to->rkey));
	assert_int_equal(sent(pair.client).wr_id, (uintptr_t)&one);
	assert_memory_equal(of_client + 40, of_client + 4, 8);
	ct_works(rdma_dereg_mr(to));
	ct_works(rdma_dereg_mr(from));
}

/* --- the peer's memory --- */

/*
 * rdma_reg_write: "Registers a memory buffer that will be accessed by a remote RDMA write
 * operation. Memory buffers registered using rdma_reg_write may be targeted in an RDMA write
 * request, allowing the buffer to be specified on the remote side of an RDMA connection as the
 * remote_addr of rdma_post_write, or similar call."
 * rdma_reg_write: "rdma_reg_write is used to register a data buffer that will be the target of an
 * RDMA write operation on a queue pair associated with an rdma_cm_id."
 * rdma_reg_*: "The start of the data buffer is specified through the addr parameter, and the total
 * size of the buffer is given by length."
 * rdma_post_write: "The contents of the local data buffer will be written into the remote memory
 * region."
 * rdma_post_write*: "The address of the remote registered memory to write into."
 * rdma_post_write*: "The registered memory key associated with the remote address."
 * rdma_post_write*: "The user-defined context associated with the write request will be returned to
 * the user through the work completion wr_id, work request identifier, field."
 * rdma_reg_read: "Registers a memory buffer that will be accessed by a remote RDMA read operation.
 * Memory buffers registered using rdma_reg_read may be targeted in an RDMA read request, allowing
 * the buffer to be specified on the remote side of an RDMA connection as the remote_addr of
 * rdma_post_read, or similar call."
 * rdma_reg_read: "rdma_reg_read is used to register a data buffer that will be the target of an
 * RDMA read operation on a queue pair associated with an rdma_cm_id."
 * rdma_post_read: "The contents of the remote memory region will be read into the local data
 * buffer."
 * rdma_post_read*: "The address of the remote registered memory to read from."
 * rdma_post_read*: "The registered memory key associated with the remote address."
 * rdma_post_read*: "The user-defined context associated with the read request will be returned to
 * the user through the work completion wr_id, work request identifier, field."
 * rdma_post_read*: "Both the remote and local data buffers must have been registered before the
 * read is issued, and the buffers must remain registered until the read completes."
 * rdma_cm: "rdma_reg_read - registers a buffer for RDMA read operations; rdma_reg_write -
 * registers a buffer for RDMA write operations; rdma_post_read - post an RDMA to read data into a
 * buffer; rdma_post_write - post an RDMA to send data from a buffer"
 */
static void memory_is_written_and_read(void **state)
{
	struct ibv_mr *here = rdma_reg_msgs(pair.client, of_client, BYTES);
	struct ibv_mr *written = rdma_reg_write(pair.server, of_server, 32);
	struct ibv_mr *read = rdma_reg_read(pair.server, of_server, 32);
	struct ibv_wc wc;

	assert_non_null(written);
	assert_non_null(read);
	assert_int_equal(written->length, 32);
	ct_works(rdma_post_write(pair.client, written, of_client, 16, here, 0,
				 (uintptr_t)of_server + 8, written->rkey));
	wc = sent(pair.client);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, (uintptr_t)written);
	assert_memory_equal(of_server + 8, of_client, 16);
	ct_works(rdma_post_read(pair.client, read, of_client + 32, 16, here, 0,
				(uintptr_t)of_server + 8, read->rkey));
	wc = sent(pair.client);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, (uintptr_t)read);
	assert_memory_equal(of_client + 32, of_client, 16);
	ct_works(rdma_dereg_mr(written));
	ct_works(rdma_dereg_mr(read));
	ct_works(rdma_dereg_mr(here));
}

/* A write to, or a read from, what was registered by those functions. */
static enum ibv_wc_status touch(bool writes, struct ibv_mr *(*registers)(struct rdma_cm_id *,
									void *, size_t))
{
	struct ibv_mr *here = rdma_reg_msgs(pair.client, of_client, BYTES);
	struct ibv_mr *there = registers ? registers(pair.server, of_server, BYTES) : NULL;
	uint32_t rkey = there ? there->rkey : 0x4711;
	enum ibv_wc_status status;

	if (writes)
		ct_works(rdma_post_write(pair.client, NULL, of_client, 8, here, 0,
					 (uintptr_t)of_server, rkey));
	else
		ct_works(rdma_post_read(pair.client, NULL, of_client, 8, here, 0,
					(uintptr_t)of_server, rkey));
	status = sent(pair.client).status;
	if (there)
		ct_works(rdma_dereg_mr(there));
	ct_works(rdma_dereg_mr(here));
	return status;
}

/* Each registers for one thing; and "The remote buffer must always be registered." */

/*
 * rdma_post_write: "The remote buffer must always be registered."
 * rdma_post_writev: "The remote buffers must always be registered."
 */
static void what_is_not_registered_is_not_written(void **state)
{
	assert_int_equal(touch(true, NULL), IBV_WC_REM_ACCESS_ERR);
}

/* Memory for messages is not the peer's to write. */
static void memory_for_messages_is_not_written(void **state)
{
	assert_int_equal(touch(true, rdma_reg_msgs), IBV_WC_REM_ACCESS_ERR);
}

static void memory_to_be_written_is_not_read(void **state)
{
	assert_int_equal(touch(false, rdma_reg_write), IBV_WC_REM_ACCESS_ERR);
}

static void memory_to_be_read_is_not_written(void **state)
{
	assert_int_equal(touch(true, rdma_reg_read), IBV_WC_REM_ACCESS_ERR);
}

/* --- what has to be registered --- */

/*
 * rdma_post_send: "Optional registered memory region associated with the posted buffer. Optional
 * flags used to control the send operation."
 * rdma_post_*: "Unless the send request is using inline data, the message buffer must have been
 * registered before being posted, with the mr parameter referencing the registration."
 * rdma_post_write*: "Optional flags used to control the write operation."
 * rdma_post_write: "Unless inline data is specified, the local data buffer must have been
 * registered before the write is issued, and the buffer must remain registered until the write
 * completes."
 * rdma_post_sendv: "Unless the send request is using inline data, the message buffers must have
 * been registered before being posted, and the buffers must remain registered until the send
 * completes."
 * rdma_post_*send: "The buffer must remain registered until the send completes."
 * rdma_post_writev: "Unless inline data is specified, the local data buffers must have been
 * registered before the write is issued, and the buffers must remain registered until the write
 * completes."
 */
static void inline_data_needs_no_region(void **state)
{
	struct ibv_mr *there = rdma_reg_write(pair.server, of_server, BYTES);
	uint8_t words[] = "short-lived";

	ct_exchange(pair.client, pair.server);
	ct_works(rdma_post_write(pair.client, NULL, words, sizeof(words), NULL, IBV_SEND_INLINE,
				 (uintptr_t)of_server, there->rkey));
	memset(words, 0, sizeof(words));
	assert_int_equal(sent(pair.client).status, IBV_WC_SUCCESS);
	assert_string_equal((char *)of_server, "short-lived");
	ct_works(rdma_dereg_mr(there));
	/* Other data does. */
	ct_works(rdma_post_send(pair.client, NULL, of_client, 8, NULL, 0));
	assert_int_equal(sent(pair.client).status, IBV_WC_LOC_PROT_ERR);
}

/*
 * rdma_post_recv: "The message buffer must have been registered before being posted, with the mr
 * parameter referencing the registration. The buffer must remain registered until the receive
 * completes."
 * rdma_post_recvv: "The message buffers must have been registered before being posted, and the
 * buffers must remain registered until the receive completes."
 */
static void a_receive_has_to_stay_registered(void **state)
{
	struct ibv_mr *to = rdma_reg_msgs(pair.server, of_server, BYTES);

	ct_works(rdma_post_recv(pair.server, NULL, of_server, BYTES, to));
	ct_works(rdma_dereg_mr(to));
	ct_works(rdma_post_send(pair.client, NULL, (void *)"x", 1, NULL, IBV_SEND_INLINE));
	assert_int_equal(received(pair.server).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(sent(pair.client).status, IBV_WC_REM_OP_ERR);
}

/*
 * rdma_post_recv: "The user is responsible for ensuring that a receive buffer is posted and large
 * enough to contain all sent data before the peer posts the corresponding send message."
 * rdma_post_recvv: "The user is responsible for ensuring that the receive is posted, and the total
 * buffer space is large enough to contain all sent data before the peer posts the corresponding
 * send message."
 */
static void a_receive_that_is_too_small_ends_it(void **state)
{
	struct ibv_mr *to = rdma_reg_msgs(pair.server, of_server, BYTES);
	struct ibv_mr *from = rdma_reg_msgs(pair.client, of_client, BYTES);

	ct_works(rdma_post_recv(pair.server, NULL, of_server, 8, to));
	ct_works(rdma_post_send(pair.client, NULL, of_client, 9, from, 0));
	assert_int_equal(received(pair.server).status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(sent(pair.client).status, IBV_WC_REM_INV_REQ_ERR);
	ct_works(rdma_dereg_mr(to));
	ct_works(rdma_dereg_mr(from));
}

/*
 * rdma_post_send*: "Send operations may not be posted to an rdma_cm_id or the corresponding queue
 * pair until it has been connected."
 * rdma_post_write*: "Write operations may not be posted to an rdma_cm_id or the corresponding queue
 * pair until it has been connected."
 * rdma_post_read*: "Read operations may not be posted to an rdma_cm_id or the corresponding queue
 * pair until it has been connected."
 * rdma_post_recv*: "Messages may be posted to an rdma_cm_id only after a queue pair has been
 * associated with it. A queue pair is bound to an rdma_cm_id after calling rdma_create_ep or
 * rdma_create_qp, if the rdma_cm_id is allocated using rdma_create_id."
 * rdma_post_*: "If an error occurs, errno will be set to indicate the failure reason."
 */
static void before_it_is_connected_it_only_receives(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_client(channel, RDMA_PS_TCP, 7471);
	struct ibv_mr *mr = rdma_reg_msgs(id, of_client, BYTES);
	struct ibv_sge sge = piece(mr, 0, 8);

	ct_qp(id);
	ct_works(rdma_post_recv(id, NULL, of_client, BYTES, mr));
	ct_works(rdma_post_recvv(id, NULL, &sge, 1));
	ct_fails(rdma_post_send(id, NULL, of_client, 8, mr, 0), EINVAL);
	ct_fails(rdma_post_sendv(id, NULL, &sge, 1, 0), EINVAL);
	ct_fails(rdma_post_write(id, NULL, of_client, 8, mr, 0, 0, 0), EINVAL);
	ct_fails(rdma_post_writev(id, NULL, &sge, 1, 0, 0, 0), EINVAL);
	ct_fails(rdma_post_read(id, NULL, of_client, 8, mr, 0, 0, 0), EINVAL);
	ct_fails(rdma_post_readv(id, NULL, &sge, 1, 0, 0, 0), EINVAL);
	ct_works(rdma_dereg_mr(mr));
	errno = 0;
	assert_null(rdma_reg_msgs(id, NULL, SIZE_MAX));
	assert_int_not_equal(errno, 0);
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* --- waiting --- */

static void *sends_later(void *arg)
{
	ct_works(rdma_post_send(pair.client, NULL, (void *)"later", 6, NULL, IBV_SEND_INLINE));
	return arg;
}

/*
 * rdma_get_recv_comp: "This calls polls the receive completion queue associated with an rdma_cm_id.
 * If a completion is not found, the call blocks until a request completes."
 * rdma_get_send_comp: "This calls polls the send completion queue associated with an rdma_cm_id. If
 * a completion is not found, the call blocks until a request completes."
 */
static void who_asks_for_a_completion_waits_for_it(void **state)
{
	struct ibv_mr *to = rdma_reg_msgs(pair.server, of_server, BYTES);
	pthread_t thread;

	/* With no receive there the send waits as well, for the other's retries. */
	ct_works(rdma_post_recv(pair.server, NULL, of_server, BYTES, to));
	assert_int_equal(pthread_create(&thread, NULL, sends_later, NULL), 0);
	assert_int_equal(received(pair.server).status, IBV_WC_SUCCESS);
	assert_string_equal((char *)of_server, "later");
	assert_int_equal(sent(pair.client).status, IBV_WC_SUCCESS);
	pthread_join(thread, NULL);
	ct_works(rdma_dereg_mr(to));
}

/* --- datagrams --- */

/*
 * rdma_post_ud_send: "The contents of the posted buffer will be sent to the specified destination
 * queue pair."
 * rdma_post_ud_send: "An address handle describing the address of the remote node. The number of
 * the destination queue pair."
 * rdma_post_ud_send: "The user-defined context associated with the send request will be returned to
 * the user through the work completion wr_id, work request identifier, field."
 * rdma_get_cm_event: "Users should use this structure when allocating their address handle."
 * rdma_cm: "An almost identical process is used to setup unreliable datagram (UD) communication
 * between nodes. No actual connection is formed between QPs however, so disconnection is not
 * needed."
 * rdma_cm: "rdma_post_ud_send - post a buffer to send a message on a UD QP"
 */
static void datagrams_go_where_their_handle_leads(void **state)
{
	struct rdma_cm_event *event;
	struct ct_pair ud;
	struct ibv_mr *to, *from;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&ud, RDMA_PS_UDP, NULL)));
	ct_qp(ud.server);
	ct_works(rdma_accept(ud.server, NULL));
	event = ct_event(ud.at_client, RDMA_CM_EVENT_ESTABLISHED);
	ah = ibv_create_ah(ud.client->pd, &event->param.ud.ah_attr);
	assert_non_null(ah);
	to = rdma_reg_msgs(ud.server, of_server, BYTES);
	from = rdma_reg_msgs(ud.client, of_client, BYTES);
	ct_works(rdma_post_recv(ud.server, NULL, of_server, BYTES, to));
	ct_works(rdma_post_ud_send(ud.client, &wc, of_client, 8, from, 0, ah,
				   event->param.ud.qp_num));
	assert_int_equal(rdma_get_send_comp(ud.client, &wc), 1);
	assert_int_equal(wc.wr_id, (uintptr_t)&wc);
	assert_int_equal(rdma_get_recv_comp(ud.server, &wc), 1);
	assert_int_equal(wc.byte_len, 40 + 8);
	assert_memory_equal(of_server + 40, of_client, 8);
	ct_works(rdma_ack_cm_event(event));
	ct_works(rdma_dereg_mr(to));
	ct_works(rdma_dereg_mr(from));
	ct_works(ibv_destroy_ah(ah));
	ct_pair_close(&ud);
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest verbs[] = {
		CONNECTED(messages_go_by_registered_memory),
		CONNECTED(several_pieces_are_one_message),
		CONNECTED(memory_is_written_and_read),
		CONNECTED(what_is_not_registered_is_not_written),
		CONNECTED(memory_for_messages_is_not_written),
		CONNECTED(memory_to_be_written_is_not_read),
		CONNECTED(memory_to_be_read_is_not_written),
		CONNECTED(inline_data_needs_no_region),
		CONNECTED(a_receive_has_to_stay_registered),
		CONNECTED(a_receive_that_is_too_small_ends_it),
		cmocka_unit_test(before_it_is_connected_it_only_receives),
		CONNECTED(who_asks_for_a_completion_waits_for_it),
		cmocka_unit_test(datagrams_go_where_their_handle_leads),
	};

	return ct_main(verbs);
}
