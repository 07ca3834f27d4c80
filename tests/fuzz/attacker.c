/* SPDX-License-Identifier: BSD-2-Clause */
#include "attacker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "attack.h"
#include "base/check.h"
#include "base/ring.h"
#include "duet.h"
#include "link/shm.h"
#include "nic/core/export.h"

enum { RINGS = 8, SOCKETS = 32, SECRETS = 64, ZOO = 8, BYTES = 1 << 16, PAGE = 4096, BURST = 40 };

static struct {
	struct duet_device device;
	struct duet_end end[ATTACKER_ENDS];
	struct vb_ring_area *ring[RINGS];
	unsigned rings, sockets, qpns, keys;
	struct vb_export *export;	 /* our own */
	const struct vb_export *other; /* the victim's */
	int socket[SOCKETS]; /* lines, bells, what leads to the hub */
	int zoo[ZOO]; /* descriptors that a region may be said to lie in */
	uint32_t qpn[SECRETS];
	struct {
		uint32_t rkey;
		uint64_t iova;
	} key[SECRETS];
	uint64_t thread_rng;
} we;

/* --- what is shared --- */

static void mapping_take(char *at, size_t bytes, bool writable)
{
	if (bytes == sizeof(struct vb_ring_area) && we.rings < RINGS)
		we.ring[we.rings++] = (struct vb_ring_area *)at;
	else if (bytes == sizeof(struct vb_export) && writable)
		we.export = (struct vb_export *)at;
	else if (bytes == sizeof(struct vb_export))
		we.other = (const struct vb_export *)at;
}

/* They are files in memory of the library's. */
static void mappings_find(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		unsigned long from, to;
		char access[8];

		if (strstr(line, "/memfd:verbatim (") &&
		    sscanf(line, "%lx-%lx %7s", &from, &to, access) == 3)
			mapping_take((char *)from, to - from, access[1] == 'w');
	}
	if (file)
		fclose(file);
}

/* What the library has of sockets within this host: lines to others, bells, the hub's ear. */
static void sockets_find(void)
{
	for (int fd = DUET_FD + 1; fd < 256 && we.sockets < SOCKETS; fd++) {
		int domain = 0;
		socklen_t bytes = sizeof(int);

		if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == AF_UNIX)
			we.socket[we.sockets++] = fd;
	}
}

/* Numbers of the victim's that it has told us, and those that its export tells of others. */
static void secrets_find(void)
{
	for (unsigned i = 0; i < ATTACKER_ENDS; i++)
		we.qpn[we.qpns++] = we.end[i].peer.qpn;
	for (unsigned i = 0; i < VB_INDICES && we.qpns < SECRETS; i++)
		if (we.other->qp[0][i].qpn)
			we.qpn[we.qpns++] = we.other->qp[0][i].qpn;
	for (unsigned i = 0; i < VB_KEYS && we.keys < SECRETS; i++) {
		if (!we.other->key[i].key)
			continue;
		we.key[we.keys].rkey = we.other->key[i].key;
		we.key[we.keys++].iova = we.other->key[i].iova;
	}
}

static void zoo_make(void)
{
	int fds[2];

	if (!pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		memcpy(we.zoo, fds, sizeof(fds));
	we.zoo[2] = memfd_create("short", MFD_CLOEXEC);
	we.zoo[3] = memfd_create("long", MFD_CLOEXEC);
	(void)!ftruncate(we.zoo[2], 100);
	(void)!ftruncate(we.zoo[3], 1 << 20);
	we.zoo[4] = open("/dev/zero", O_RDWR | O_CLOEXEC);
	we.zoo[5] = open("/", O_RDONLY | O_CLOEXEC);
	we.zoo[6] = we.end[0].memory.fd;
	we.zoo[7] = we.socket[0];
}

/* --- rings --- */

static struct vb_ring_shared *lane_any(uint64_t *rng)
{
	unsigned ring = attack_below(rng, we.rings), lane = attack_below(rng, VB_RING_LANES);

	return &we.ring[ring]->lane[lane];
}

/* Where the next frame goes, as far as the marks tell. */
static uint32_t lane_head(const struct vb_ring_shared *lane)
{
	uint32_t head = 0;

	for (unsigned i = 0; i < VB_RING_SLOTS; i++) {
		uint32_t position = (uint32_t)lane->slot[i].mark;

		if (position - head < 1u << 30)
			head = position;
	}
	return head;
}

static void be(uint8_t *at, uint64_t value, unsigned bytes)
{
	while (bytes--)
		*at++ = (uint8_t)(value >> 8 * bytes);
}

/* A frame like the last one, with other numbers in its headers: BTH, and where it has one, RETH. */
static void frame_forge(uint64_t *rng)
{
	static const uint8_t opcodes[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
					  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
					  0x12, 0x13, 0x14, 0x16, 0x17, 0x24, 0x2a, 0x64, 0xa4};
	struct vb_ring_shared *lane = lane_any(rng);
	uint32_t head = lane_head(lane), secret = attack_below(rng, SECRETS);
	struct vb_ring_slot *slot = &lane->slot[vb_ring_slot_index(head)];
	struct vb_ring_slot *before = &lane->slot[vb_ring_slot_index(head - 1)];
	uint64_t lengths = before->mark >> 32;
	uint8_t octets[VB_RING_HEAD_BYTES_MAX];
	unsigned what = (unsigned)vb_prng_next(rng);

	memcpy(octets, before->octets, sizeof(octets));
	if (what & 1)
		octets[0] = opcodes[attack_below(rng, VB_ARRAY_LEN(opcodes))];
	if (what & 2 && we.qpns)
		be(octets + 5, we.qpn[secret % we.qpns], 3);
	if (what & 4)
		be(octets + 9, DUET_PSN + attack_below(rng, 4000), 3);
	if (what & 8 && we.keys) {
		be(octets + 12, we.key[secret % we.keys].iova + attack_below(rng, 1 << 16), 8);
		be(octets + 20, we.key[secret % we.keys].rkey, 4);
		be(octets + 24, attack_below(rng, 1 << 16), 4);
	}
	if (what & 16)
		octets[attack_below(rng, sizeof(octets))] = (uint8_t)vb_prng_next(rng);
	if (what & 32)
		lengths = (uint64_t)attack_below(rng, 60) << 24 | attack_below(rng, 70000);
	memcpy(slot->octets, octets, sizeof(octets));
	atomic_store(&slot->mark, lengths << 32 | (head + 1));
}

static void slot_scribble(uint64_t *rng)
{
	struct vb_ring_shared *lane = lane_any(rng);
	struct vb_ring_slot *slot = &lane->slot[attack_below(rng, VB_RING_SLOTS)];
	unsigned at = attack_below(rng, sizeof(*slot)), how = attack_below(rng, 4);
	uint64_t value = vb_prng_next(rng);

	if (how == 0)
		slot->mark = value;
	else if (how == 1)
		slot->mark += 1ull << (value & 63);
	else
		((uint8_t *)slot)[at] = (uint8_t)value;
}

static void words_scribble(uint64_t *rng)
{
	struct vb_ring_shared *lane = lane_any(rng);
	_Atomic uint32_t *const words[] = {&lane->tail, &lane->heeds_direct, &lane->wants_room,
					   (_Atomic uint32_t *)&lane->direct,
					   (_Atomic uint32_t *)&lane->direct + 1};
	_Atomic uint32_t *word = words[attack_below(rng, VB_ARRAY_LEN(words))];
	uint32_t value = (uint32_t)vb_prng_next(rng), small = attack_below(rng, 8);

	if (attack_one_in(rng, 2))
		*word += small - 3;
	else
		*word = value;
}

static void data_scribble(uint64_t *rng)
{
	struct vb_ring_shared *lane = lane_any(rng);
	unsigned at = attack_below(rng, VB_RING_DATA_BYTES), n = attack_below(rng, 5000);
	int octet = (int)attack_below(rng, 256);

	if (n > VB_RING_DATA_BYTES - at)
		n = VB_RING_DATA_BYTES - at;
	memset(lane->data + at, octet, n);
}

static void lane_wipe(uint64_t *rng)
{
	struct vb_ring_shared *lane = lane_any(rng);
	bool zeros = attack_one_in(rng, 2);

	memset(lane->slot, zeros ? 0 : 0xff, sizeof(lane->slot));
}

/* --- export --- */

static void export_words(uint64_t *rng)
{
	struct vb_export *export = we.export;
	uint64_t value = vb_prng_next(rng);

	switch (attack_below(rng, 10)) {
	case 0:
		export->magic = (uint32_t)value;
		break;
	case 1:
		export->version = (uint32_t)value;
		break;
	case 2:
		export->pid = attack_one_in(rng, 2) ? we.other->pid : (uint32_t)value;
		break;
	case 3:
		export->nonce_address = we.other->nonce_address;
		break;
	case 4:
		export->nonce = we.other->nonce;
		break;
	case 5:
		export->left = (uint32_t)value & 1;
		break;
	case 6:
		export->dm_base = value;
		break;
	case 7:
		export->self = we.other->self;
		break;
	case 8:
		export->bell[value & 1] = value & 2 ? we.other->bell[value & 1] : value;
		break;
	default:
		export->sleep_epoch += (uint32_t)value & 3;
	}
}

static void export_qp(uint64_t *rng)
{
	unsigned end = attack_below(rng, ATTACKER_ENDS), secret = attack_below(rng, SECRETS);
	struct vb_export_qp *qp =
		&we.export->qp[0][we.end[end].qp->qp_num & (VB_INDICES - 1)];
	uint64_t value = vb_prng_next(rng);

	switch (attack_below(rng, 5)) {
	case 0:
		qp->seq += (uint32_t)value & 3;
		break;
	case 1:
		qp->qpn = we.end[end].qp->qp_num;
		break;
	case 2:
		qp->pd = value;
		break;
	case 3:
		qp->dqpn = we.qpns ? we.qpn[secret % we.qpns] : (uint32_t)value;
		break;
	default:
		qp->access = (uint32_t)value;
	}
}

static void export_key(uint64_t *rng)
{
	unsigned end = attack_below(rng, ATTACKER_ENDS), zoo = attack_below(rng, ZOO);
	struct vb_export_key *key = &we.export->key[vb_key_place(we.end[end].open_mr->rkey)];
	uint64_t value = vb_prng_next(rng), secret = attack_below(rng, SECRETS);

	switch (attack_below(rng, 9)) {
	case 0:
		key->seq += (uint32_t)value & 3;
		break;
	case 1:
		key->access = (uint32_t)value;
		break;
	case 2:
		key->iova = (uintptr_t)we.end[end].memory.open - (value & 0xfffff);
		break;
	case 3:
		key->bytes = value >> (value & 63);
		break;
	case 4:
		key->base = we.keys && value & 1 ? we.key[secret % we.keys].iova : value;
		break;
	case 5:
		key->shared = value & 1 ? we.zoo[zoo] : (int)(value >> 32);
		key->shared_id++;
		break;
	case 6:
		key->shared_offset = value >> (value & 63);
		key->shared_id++;
		break;
	case 7:
		key->shared_skip = (uint16_t)value;
		key->shared_cut = (uint16_t)(value >> 16);
		break;
	default:
		key->pd = value;
	}
}

/* --- bells, memory, ends --- */

static void bell_flood(uint64_t *rng)
{
	unsigned which = attack_below(rng, SOCKETS), times = attack_below(rng, 200);
	struct vb_bell_key key = {we.other->bell[0], we.other->bell[1]};
	struct vb_bell_target bell;

	/* Sometimes with a word that is wrong, or to somebody else. */
	if (attack_one_in(rng, 4))
		key.word++;
	if (attack_one_in(rng, 8))
		key.name++;
	vb_bell_aim(&bell, &key);
	while (times--)
		vb_bell_ring(we.socket[which % we.sockets], &bell);
}

static void line_flood(uint64_t *rng)
{
	unsigned which = attack_below(rng, SOCKETS), times = attack_below(rng, 200);
	uint8_t octets[64] = {0};

	while (times--)
		(void)!send(we.socket[which % we.sockets], octets, sizeof(octets),
			    MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void line_hang_up(uint64_t *rng)
{
	static const int how[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
	unsigned which = attack_below(rng, SOCKETS), way = attack_below(rng, 3);

	if (attack_one_in(rng, 50))
		shutdown(we.socket[which % we.sockets], how[way]);
}

/* The library has it registered, and the victim may be in the midst of it. */
static void memory_vanish(uint64_t *rng)
{
	struct duet_end *end = &we.end[attack_below(rng, ATTACKER_ENDS)];
	uint8_t *page = end->memory.open + attack_below(rng, BYTES / PAGE) * PAGE;
	unsigned how = attack_below(rng, 3);

	if (how == 0 && end->memory.fd >= 0)
		(void)!ftruncate(end->memory.fd, (off_t)attack_below(rng, 2 * BYTES));
	else if (how == 1)
		mprotect(page, PAGE, PROT_NONE);
	else
		mmap(page, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	(void)!ftruncate(we.zoo[3], (off_t)attack_below(rng, 1 << 20));
}

static void die(uint64_t *rng)
{
	unsigned how = attack_below(rng, 400);

	if (how == 0)
		raise(SIGKILL);
	if (how == 1)
		_exit(0);
	if (how == 2)
		exit(0);
	if (how == 3)
		raise(SIGSTOP);
}

static const struct {
	const char *word;
	unsigned weight;
	void (*act)(uint64_t *rng);
} acts[] = {
	{"ring", 30, frame_forge},     {"ring", 12, slot_scribble},  {"ring", 8, words_scribble},
	{"ring", 6, data_scribble},    {"ring", 1, lane_wipe},	     {"export", 6, export_words},
	{"export", 8, export_qp},      {"export", 12, export_key},   {"bell", 3, bell_flood},
	{"bell", 2, line_flood},       {"hangup", 2, line_hang_up},  {"memory", 2, memory_vanish},
	{"die", 2, die},
};

static void act(uint64_t *rng)
{
	unsigned all = 0, at, i = 0;

	for (unsigned k = 0; k < VB_ARRAY_LEN(acts); k++)
		all += acts[k].weight;
	for (at = attack_below(rng, all); at >= acts[i].weight; i++)
		at -= acts[i].weight;
	if (!attack_leaves_out(acts[i].word))
		acts[i].act(rng);
}

/* --- the honest part --- */

static void *go_on(void *none)
{
	struct ibv_wc wc;

	for (;;) {
		struct duet_end *end = &we.end[attack_below(&we.thread_rng, ATTACKER_ENDS - 1)];
		unsigned bytes = attack_below(&we.thread_rng, 4000);
		bool writes = attack_one_in(&we.thread_rng, 2);
		struct ibv_sge sge = {(uintptr_t)end->memory.own, bytes, end->own_mr->lkey};
		struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1}, *bad_send;
		struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;

		send.opcode = writes ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
		send.wr.rdma.remote_addr = end->peer.open;
		send.wr.rdma.rkey = end->peer.rkey;
		ibv_post_recv(end->qp, &recv, &bad_recv);
		ibv_post_send(end->qp, &send, &bad_send);
		for (unsigned i = 0; i < ATTACKER_ENDS; i++)
			while (ibv_poll_cq(we.end[i].cq, 1, &wc) == 1)
				;
	}
	return NULL;
}

/* The library that it does this to may fall over it: that is nobody's harm. */
static void fall(int number)
{
	raise(SIGKILL);
}

static void begin(uint64_t *rng)
{
	struct duet_options options = {.bytes = BYTES, .timeout = 14};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	duet_device_open(&we.device);
	for (unsigned i = 0; i < ATTACKER_ENDS; i++) {
		options.type = attacker_types[i];
		options.file = attack_one_in(rng, 2);
		duet_open(&we.end[i], &we.device, &options);
		duet_meet(&we.end[i], &we.device, DUET_FD, options.timeout);
	}
	duet_watch(0);
}

int attacker_run(char **arguments)
{
	pthread_t thread;
	uint64_t rng;

	attack_arguments(arguments, 0);
	rng = attack_round(0);
	begin(&rng);
	we.thread_rng = vb_prng_next(&rng);
	if (pthread_create(&thread, NULL, go_on, NULL))
		return ATTACKER_FAILED;
	usleep(attack_below(&rng, 20000));
	mappings_find();
	sockets_find();
	zoo_make();
	if (!we.rings || !we.export || !we.other || !we.sockets)
		_exit(ATTACKER_FAILED);
	secrets_find();
	/* What its own library has to say of what it does to itself is nobody's concern. */
	(void)!freopen("/dev/null", "w", stderr);
	signal(SIGSEGV, fall);
	signal(SIGBUS, fall);
	signal(SIGABRT, fall);
	for (uint64_t i = 0;; i++) {
		uint64_t its = attack_round(i);
		unsigned n = attack_below(&its, BURST);

		while (n--)
			act(&its);
		usleep(attack_below(&its, 500));
	}
}
