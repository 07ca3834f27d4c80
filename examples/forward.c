/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Forwards Ethernet frames between two stations, by verbs alone: a RAW_PACKET QP and a flow rule
 * for each direction. Nothing is copied: a frame is sent on from the buffer that it came into.
 *
 *	forward DEVICE MAC1 STATION1 MAC2 STATION2
 *
 * A frame for MAC1 is sent on to STATION2, as from MAC2; one for MAC2 to STATION1, as from MAC1.
 * So for station 1, whoever is behind the forwarder is at MAC1, and for station 2 at MAC2. It ends
 * when its standard input does, and says how many frames went which way.
 */

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAC_BYTES = 6,
	FRAMES = 512, /* buffers of each direction */
	FRAME_BYTES = 9216,
	POLL_MAX = 32,
	LOOKS = 20000, /* at the queues between two looks at the standard input */
};

/* What goes in by one QP, and out by the other. */
struct direction {
	struct ibv_qp *in, *out;
	struct ibv_cq *in_cq, *out_cq;
	struct ibv_flow *flow;
	struct ibv_mr *mr;
	uint8_t *buffers;
	uint8_t address[MAC_BYTES];	/* it takes frames that are for this */
	uint8_t to[MAC_BYTES], from[MAC_BYTES]; /* what it writes into them */
	unsigned long long frames, lost;
};

static void die(const char *what)
{
	fprintf(stderr, "forward: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void mac_read(uint8_t mac[MAC_BYTES], const char *text)
{
	if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		   &mac[4], &mac[5]) != MAC_BYTES) {
		fprintf(stderr, "forward: %s is no MAC\n", text);
		exit(2);
	}
}

static struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	if (!context)
		die(name);
	return context;
}

/* A QP that is ready to send and to receive: port and states, and nothing else. */
static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.cap = { .max_send_wr = FRAMES,
			 .max_recv_wr = FRAMES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RAW_PACKET,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		die("ibv_create_qp");
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_qp_attr attr = { .qp_state = way[i], .port_num = 1 };
		int mask = IBV_QP_STATE | (i == 0 ? IBV_QP_PORT : 0);

		errno = ibv_modify_qp(qp, &attr, mask);
		if (errno)
			die("ibv_modify_qp");
	}
	return qp;
}

static struct ibv_flow *flow_make(struct ibv_qp *qp, const uint8_t mac[MAC_BYTES])
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL,
			  .size = sizeof(rule),
			  .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};
	struct ibv_flow *flow;

	memcpy(rule.eth.val.dst_mac, mac, MAC_BYTES);
	memset(rule.eth.mask.dst_mac, 0xff, MAC_BYTES);
	flow = ibv_create_flow(qp, &rule.attr);
	if (!flow)
		die("ibv_create_flow");
	return flow;
}

static void receive(struct direction *d, uint64_t buffer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)d->buffers + buffer * FRAME_BYTES,
		.length = FRAME_BYTES,
		.lkey = d->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = buffer, .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(d->in, &wr, &bad);
	if (errno)
		die("ibv_post_recv");
}

static void direction_open(struct direction *d, struct ibv_pd *pd, const uint8_t *address,
			   const uint8_t *to, const uint8_t *from)
{
	memcpy(d->address, address, MAC_BYTES);
	memcpy(d->to, to, MAC_BYTES);
	memcpy(d->from, from, MAC_BYTES);
	d->buffers = aligned_alloc(4096, (size_t)FRAMES * FRAME_BYTES);
	if (!d->buffers)
		die("memory");
	d->mr = ibv_reg_mr(pd, d->buffers, (size_t)FRAMES * FRAME_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!d->mr)
		die("ibv_reg_mr");
}

/* A frame came in: other addresses, and out by the other QP. */
static void send_on(struct direction *d, const struct ibv_wc *wc)
{
	uint8_t *frame = d->buffers + wc->wr_id * FRAME_BYTES;
	struct ibv_sge sge = {
		.addr = (uintptr_t)frame,
		.length = wc->byte_len,
		.lkey = d->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wc->wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	}, *bad;

	memcpy(frame, d->to, MAC_BYTES);
	memcpy(frame + MAC_BYTES, d->from, MAC_BYTES);
	if (ibv_post_send(d->out, &wr, &bad)) {
		d->lost++;
		receive(d, wc->wr_id);
	}
	d->frames++;
}

static int turn(struct direction *d)
{
	struct ibv_wc wc[POLL_MAX];
	int n = ibv_poll_cq(d->out_cq, POLL_MAX, wc), sent = n;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "forward: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		receive(d, wc[i].wr_id);
	}
	n = ibv_poll_cq(d->in_cq, POLL_MAX, wc);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "forward: %s\n", ibv_wc_status_str(wc[i].status));
			exit(1);
		}
		send_on(d, &wc[i]);
	}
	return sent + n;
}

static int input_ended(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char text[256];

	return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, text, sizeof(text)) <= 0;
}

static void run(struct direction d[2])
{
	do {
		for (int i = 0; i < LOOKS; i++) {
			turn(&d[0]);
			turn(&d[1]);
		}
	} while (!input_ended());
}

int main(int argc, char **argv)
{
	uint8_t mac[2][MAC_BYTES], station[2][MAC_BYTES];
	struct direction d[2] = { 0 };
	struct ibv_context *context;
	struct ibv_cq *cq[4];
	struct ibv_pd *pd;

	if (argc != 6) {
		fprintf(stderr, "usage: forward DEVICE MAC1 STATION1 MAC2 STATION2\n");
		return 2;
	}
	for (int i = 0; i < 2; i++) {
		mac_read(mac[i], argv[2 + 2 * i]);
		mac_read(station[i], argv[3 + 2 * i]);
	}
	context = device_open(argv[1]);
	pd = ibv_alloc_pd(context);
	if (!pd)
		die("ibv_alloc_pd");
	for (int i = 0; i < 4; i++) {
		cq[i] = ibv_create_cq(context, 2 * FRAMES, NULL, NULL, 0);
		if (!cq[i])
			die("ibv_create_cq");
	}
	/* QP 0 takes what is for MAC1, and sends what is from it; QP 1 MAC2. */
	for (int i = 0; i < 2; i++)
		d[i].in = qp_make(pd, cq[2 + i], cq[i]);
	for (int i = 0; i < 2; i++) {
		d[i].in_cq = cq[i];
		d[i].out = d[1 - i].in;
		d[i].out_cq = cq[2 + 1 - i];
		direction_open(&d[i], pd, mac[i], station[1 - i], mac[1 - i]);
		for (uint64_t k = 0; k < FRAMES; k++)
			receive(&d[i], k);
		d[i].flow = flow_make(d[i].in, mac[i]);
	}
	printf("ready\n");
	fflush(stdout);
	run(d);
	for (int i = 0; i < 2; i++)
		printf("from station %d: %llu frames, %llu lost\n", i + 1, d[i].frames, d[i].lost);
	for (int i = 0; i < 2; i++) {
		ibv_destroy_flow(d[i].flow);
		ibv_destroy_qp(d[i].in);
		ibv_dereg_mr(d[i].mr);
		free(d[i].buffers);
	}
	for (int i = 0; i < 4; i++)
		ibv_destroy_cq(cq[i]);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
