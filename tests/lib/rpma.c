/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program of librpma does: memory of the server's is written, flushed, read back and written
 * atomically, and messages go both ways, with immediate data and without. All data is checked.
 *
 *   rpma server ADDRESS PORT        serves one client
 *   rpma client ADDRESS PORT
 *
 * It prints "rpma: done" if all is right.
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OCTETS = 8192,	 /* of memory: first what is written, then a page of messages */
	HALF = 4096,
	MESSAGE = 64,	 /* octets */
	MESSAGES = 4,	 /* for which the server has room; the last of them is its answer's place */
	IMM = 0x12345678,
	USAGE = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
		RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_SEND |
		RPMA_MR_USAGE_RECV,
};

#define MUST(call) must(call, #call)
#define WANT(condition) must((condition) ? 0 : 1, #condition)

static struct rpma_peer *peer;
static struct rpma_conn *conn;
static struct rpma_mr_local *mr;
static struct rpma_cq *cq;
static char *memory;

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "rpma: %s: %s\n", what, rc < 0 ? rpma_err_2str(rc) : "it is not so");
	exit(1);
}

static size_t message_at(int i)
{
	return HALF + (size_t)i * MESSAGE;
}

static void say(int i, const char *words)
{
	snprintf(memory + message_at(i), MESSAGE, "%s", words);
}

static void begin(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *context = NULL;

	MUST(rpma_utils_get_ibv_context(address, type, &context));
	WANT(context);
	MUST(rpma_peer_new(context, &peer));
	memory = aligned_alloc(HALF, OCTETS);
	WANT(memory);
	memset(memory, 0, OCTETS);
	MUST(rpma_mr_reg(peer, memory, OCTETS, USAGE, &mr));
}

static void event_await(enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	MUST(rpma_conn_next_event(conn, &event));
	WANT(event == wanted);
}

static void opened(void)
{
	event_await(RPMA_CONN_ESTABLISHED);
	MUST(rpma_conn_get_cq(conn, &cq));
}

/* The next completion, which must be this one. */
static void done(enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	int rc;

	while ((rc = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION)
		MUST(rpma_cq_wait(cq));
	MUST(rc);
	WANT(wc->status == IBV_WC_SUCCESS);
	WANT(wc->opcode == opcode);
}

static void end(void)
{
	MUST(rpma_conn_delete(&conn));
	MUST(rpma_mr_dereg(&mr));
	MUST(rpma_peer_delete(&peer));
	puts("rpma: done");
}

/* --- the server --- */

/* Its memory's description is what the client gets to know when it connects. */
static void serve_open(const char *address, const char *port)
{
	char description[256];
	struct rpma_conn_private_data data = { .ptr = description };
	struct rpma_conn_req *request;
	struct rpma_ep *ep;
	size_t bytes;

	MUST(rpma_mr_get_descriptor_size(mr, &bytes));
	WANT(bytes <= sizeof(description));
	MUST(rpma_mr_get_descriptor(mr, description));
	data.len = (uint8_t)bytes;
	MUST(rpma_ep_listen(peer, address, port, &ep));
	MUST(rpma_ep_next_conn_req(ep, NULL, &request));
	for (int i = 0; i < MESSAGES - 1; i++)
		MUST(rpma_conn_req_recv(request, mr, message_at(i), MESSAGE, NULL));
	MUST(rpma_conn_req_connect(&request, &data, &conn));
	MUST(rpma_ep_shutdown(&ep));
	opened();
}

static void serve(const char *address, const char *port)
{
	struct ibv_wc wc;

	begin(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	serve_open(address, port);
	done(IBV_WC_RECV, &wc);
	WANT(!strcmp(memory + message_at(0), "written"));
	WANT(!memcmp(memory, "atomical", 8));
	for (int i = 8; i < HALF; i++)
		WANT(memory[i] == (char)(i * 7));
	done(IBV_WC_RECV, &wc);
	WANT((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == htobe32(IMM));
	WANT(!strcmp(memory + message_at(1), "and more"));
	done(IBV_WC_RECV_RDMA_WITH_IMM, &wc);
	WANT((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == htobe32(IMM));
	say(MESSAGES - 1, "seen");
	MUST(rpma_send(conn, mr, message_at(MESSAGES - 1), MESSAGE, RPMA_F_COMPLETION_ALWAYS,
		       NULL));
	done(IBV_WC_SEND, &wc);
	event_await(RPMA_CONN_CLOSED);
	MUST(rpma_conn_disconnect(conn));
}

/* --- the client --- */

static struct rpma_mr_remote *ask(const char *address, const char *port)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *request;
	struct rpma_mr_remote *there;
	size_t bytes;

	MUST(rpma_conn_req_new(peer, address, port, NULL, &request));
	MUST(rpma_conn_req_recv(request, mr, message_at(MESSAGES - 1), MESSAGE, NULL));
	MUST(rpma_conn_req_connect(&request, NULL, &conn));
	opened();
	MUST(rpma_conn_get_private_data(conn, &data));
	MUST(rpma_mr_get_descriptor_size(mr, &bytes));
	MUST(rpma_mr_remote_from_descriptor(data.ptr, bytes, &there));
	return there;
}

static void write_and_read(struct rpma_mr_remote *there)
{
	struct ibv_wc wc;

	for (int i = 0; i < HALF; i++)
		memory[i] = (char)(i * 7);
	MUST(rpma_write(conn, there, 0, mr, 0, HALF, RPMA_F_COMPLETION_ON_ERROR, NULL));
	MUST(rpma_flush(conn, there, 0, HALF, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, NULL));
	done(IBV_WC_RDMA_READ, &wc);
	MUST(rpma_atomic_write(conn, there, 0, "atomical", RPMA_F_COMPLETION_ON_ERROR, NULL));
	memset(memory, 0, HALF);
	MUST(rpma_read(conn, mr, 0, there, 0, HALF, RPMA_F_COMPLETION_ALWAYS, NULL));
	done(IBV_WC_RDMA_READ, &wc);
	WANT(!memcmp(memory, "atomical", 8));
	for (int i = 8; i < HALF; i++)
		WANT(memory[i] == (char)(i * 7));
}

static void ask_and_tell(const char *address, const char *port)
{
	struct rpma_mr_remote *there;
	struct ibv_wc wc;

	begin(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	there = ask(address, port);
	write_and_read(there);
	say(0, "written");
	say(1, "and more");
	MUST(rpma_send(conn, mr, message_at(0), MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL));
	done(IBV_WC_SEND, &wc);
	MUST(rpma_send_with_imm(conn, mr, message_at(1), MESSAGE, RPMA_F_COMPLETION_ALWAYS, IMM,
				NULL));
	done(IBV_WC_SEND, &wc);
	MUST(rpma_write_with_imm(conn, there, HALF / 2, mr, HALF / 2, 8, RPMA_F_COMPLETION_ON_ERROR,
				 IMM, NULL));
	done(IBV_WC_RECV, &wc);
	WANT(!strcmp(memory + message_at(MESSAGES - 1), "seen"));
	MUST(rpma_conn_disconnect(conn));
	event_await(RPMA_CONN_CLOSED);
	MUST(rpma_mr_remote_delete(&there));
}

int main(int argc, char **argv)
{
	WANT(argc == 4);
	if (!strcmp(argv[1], "server"))
		serve(argv[2], argv[3]);
	else
		ask_and_tell(argv[2], argv[3]);
	end();
	return 0;
}
