/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib.h"

#include <pthread.h>
#include <unistd.h>

/*
 * What the log says of connections that do not come about, and what `verbatim status` shows of
 * those that do.
 */

static char log_path[] = "/tmp/verbatim-words-XXXXXX";
static char text[1 << 16];

/* What was written since the last call. */
static const char *log_read(void)
{
	static long from;
	FILE *file = fopen(log_path, "r");
	size_t n;

	assert_non_null(file);
	assert_int_equal(fseek(file, from, SEEK_SET), 0);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	from += (long)n;
	fclose(file);
	return text;
}

static void has(const char *all, const char *words)
{
	if (!strstr(all, words))
		fail_msg("not there: %s\nbut: %s", words, all);
}

__attribute__((format(printf, 1, 2))) static void log_has(const char *format, ...)
{
	char words[256];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	has(log_read(), words);
}

__attribute__((format(printf, 1, 2))) static void status_has(const char *format, ...)
{
	char words[256];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	ct_verbatim("status", text, sizeof(text));
	has(text, words);
}

static void asks(struct rdma_event_channel *channel, enum rdma_port_space ps, uint16_t port,
		 enum rdma_cm_event_type answer, int status)
{
	struct rdma_cm_id *id = ct_client(channel, ps, port);

	ct_qp(id);
	ct_works(rdma_connect(id, NULL));
	assert_int_equal(ct_pass(channel, answer), status);
	rdma_destroy_qp(id);
	ct_works(rdma_destroy_id(id));
}

/* --- the log --- */

static void who_finds_nobody_is_told_who_listens(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	asks(channel, RDMA_PS_TCP, 7471, RDMA_CM_EVENT_REJECTED, 8);
	log_has("rdma_connect to %s port 7471 of TCP: refused there: ", ct_ip());
	ct_works(rdma_bind_addr(id, ct_addr(7472)));
	ct_works(rdma_listen(id, 5));
	asks(channel, RDMA_PS_TCP, 7471, RDMA_CM_EVENT_REJECTED, 8);
	log_has("(8); the nearest is port 7472, pid %d (", (int)getpid());
	asks(channel, RDMA_PS_UDP, 7471, RDMA_CM_EVENT_UNREACHABLE, 1);
	log_has("(1); no port of UDP is listened to here");
	ct_works(rdma_destroy_id(id));
	asks(channel, RDMA_PS_TCP, 7471, RDMA_CM_EVENT_REJECTED, 8);
	log_has("(8); no port of TCP is listened to here");
	rdma_destroy_event_channel(channel);
}

static void another_address_is_named(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);

	ct_works(rdma_bind_addr(id, ct_addr_of(CT_OTHER_IP, 7471)));
	ct_works(rdma_listen(id, 5));
	asks(channel, RDMA_PS_TCP, 7471, RDMA_CM_EVENT_REJECTED, 8);
	log_has("(8); the nearest is at another address, port 7471, pid %d (", (int)getpid());
	ct_works(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void who_is_rejected_reads_by_whom(void **state)
{
	struct ct_pair pair;

	ct_works(rdma_ack_cm_event(ct_pair_ask(&pair, RDMA_PS_TCP, NULL)));
	ct_works(rdma_reject(pair.server, NULL, 0));
	ct_pass(pair.at_client, RDMA_CM_EVENT_REJECTED);
	log_has("rdma_connect to %s port %u of TCP: refused there: rejected by the application "
		"(28)", ct_ip(), ct_src_port(pair.listener));
	ct_pair_close(&pair);
}

static void another_type_is_named(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_addrinfo info = { .ai_flags = RAI_PASSIVE, .ai_family = AF_INET,
				      .ai_port_space = RDMA_PS_IB, .ai_qp_type = IBV_QPT_XRC_RECV,
				      .ai_src_addr = ct_addr(7471),
				      .ai_src_len = sizeof(struct sockaddr_storage) };
	struct rdma_cm_id *listener;

	ct_works(rdma_create_ep(&listener, &info, NULL, NULL));
	ct_works(rdma_listen(listener, 0));
	asks(channel, RDMA_PS_IB, 7471, RDMA_CM_EVENT_REJECTED, 28);
	log_has("a request from %s is refused: it is for another type of QP than XRC, which "
		"listens at %s port 7471 of IB", ct_ip(), ct_ip());
	rdma_destroy_ep(listener);
	rdma_destroy_event_channel(channel);
}

static void *destroys(void *id)
{
	ct_works(rdma_destroy_id(id));
	return NULL;
}

static void who_waits_says_for_what(void **state)
{
	struct rdma_event_channel *channel = ct_channel();
	struct rdma_cm_id *id = ct_id(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event;
	pthread_t thread;

	ct_works(rdma_resolve_addr(id, NULL, ct_addr(7471), CT_RESOLVE_MS));
	event = ct_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	status_has("): 1 event is not acknowledged\n");
	assert_int_equal(pthread_create(&thread, NULL, destroys, id), 0);
	while (!strstr(log_read(), "rdma_destroy_id waits until RDMA_CM_EVENT_ADDR_RESOLVED, which "
				   "was fetched "))
		usleep(10000);
	has(text, " s ago, is acknowledged (rdma_ack_cm_event)");
	ct_works(rdma_ack_cm_event(event));
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(channel);
}

/* --- status --- */

static void status_shows_who_listens_and_who_is_connected(void **state)
{
	struct rdma_cm_id *everywhere = ct_id(NULL, RDMA_PS_UDP);
	struct ct_pair pair;

	ct_works(rdma_bind_addr(everywhere, ct_any(7474)));
	ct_works(rdma_listen(everywhere, 3));
	ct_pair_open(&pair);
	status_has("): listens at %s port %u of TCP, backlog 1024\n", ct_ip(),
		   ct_src_port(pair.listener));
	status_has("): listens at %s port 7474 of UDP, backlog 3\n",
		   getenv("CT_IPV6") ? "::" : "0.0.0.0");
	status_has("): 2 ids with %s: established\n", ct_ip());
	ct_works(rdma_disconnect(pair.client));
	ct_pass(pair.at_server, RDMA_CM_EVENT_DISCONNECTED);
	status_has("): 1 id with %s: DREQ sent\n", ct_ip());
	status_has("): 1 id with %s: DREQ received\n", ct_ip());
	ct_works(rdma_disconnect(pair.server));
	ct_pass(pair.at_client, RDMA_CM_EVENT_DISCONNECTED);
	ct_pair_close(&pair);
	ct_works(rdma_destroy_id(everywhere));
	ct_verbatim("status", text, sizeof(text));
	assert_null(strstr(text, "rdma_cm"));
}

int main(void)
{
	const struct CMUnitTest words[] = {
		cmocka_unit_test(who_finds_nobody_is_told_who_listens),
		cmocka_unit_test(another_address_is_named),
		cmocka_unit_test(who_is_rejected_reads_by_whom),
		cmocka_unit_test(another_type_is_named),
		cmocka_unit_test(who_waits_says_for_what),
		cmocka_unit_test(status_shows_who_listens_and_who_is_connected),
	};
	int fd = mkstemp(log_path), rc;

	assert_true(fd >= 0);
	close(fd);
	setenv("VERBATIM_LOG", log_path, 1);
	rc = ct_main(words);
	unlink(log_path);
	return rc;
}
