/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A device's peers, without a hub: what would come from there is made here, as other processes
 * would have made it, well or badly.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "descriptors.h"
#include "group.h"
#include "idle_host.h"
#include "link/shm.h"
#include "nic/control/nic.h"
#include "nic/control/qp.h"
#include "nic/control/qp_modify.h"
#include "nic/data/qp.h"
#include "nic/queue/cq.h"
#include "nic/way/peer.h"
#include "run/device.h"

enum { OWN = 5, OTHER = 9, NONE = -1 };

static struct vb_device *dev;
static struct vb_ctx *ctx;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_qp *qp;

/* Another process, or what it makes. */
struct other {
	struct vb_export *export;
	int export_fd;
	int bell, line, line_outer; /* the line: its end, and ours */
	struct vb_ring_area *area;
	int ring_fd;
	struct vb_ring_tx tx; /* of lane 0 */
};

/* --- our side --- */

static int host_lease(void *arg, uint16_t *slot, uint32_t *next_index)
{
	*slot = OWN;
	*next_index = 100;
	return 0;
}

static int begin(void **state)
{
	struct vb_nic_host host = idle_host(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_recv_wr = 1 } };

	dev = calloc(1, sizeof(*dev));
	assert_non_null(dev);
	vb_links_open(&dev->links, &dev->env, &dev->hub, &dev->ports[0].slot);
	assert_int_equal(vb_peers_open(dev), 0);
	host.arg = dev;
	host.wire.lease = host_lease;
	host.peers = &vb_peers_host;
	host.export_memory = dev->peers.export;
	assert_int_equal(vb_nic_create(&dev->nic, &host, 1), 0);
	dev->ports[0].slot = OWN;
	atomic_store(&dev->port_count, 1);
	/* A QP, so that the slot is leased. */
	assert_int_equal(vb_ctx_create(dev->nic, 0, &ctx), 0);
	assert_int_equal(vb_pd_create(ctx, &pd), 0);
	assert_int_equal(vb_cq_create(ctx, 4, NULL, 0, NULL, &cq), 0);
	init.send_cq = init.recv_cq = &cq->ibv.cq;
	assert_int_equal(vb_qp_create(pd, &init, &qp), 0);
	return 0;
}

static int end(void **state)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	vb_qp_free(qp);
	assert_int_equal(vb_cq_destroy(cq), 0);
	vb_cq_free(cq);
	assert_int_equal(vb_pd_destroy(pd), 0);
	vb_ctx_destroy(ctx);
	vb_nic_destroy(dev->nic);
	vb_peers_close(dev);
	vb_links_close(&dev->links);
	free(dev);
	return 0;
}

#define PEERS(name) TEST_BETWEEN(name, begin, end)

static uint64_t frames_taken(void)
{
	vb_nic_lanes_scan(dev->nic);
	return atomic_load(&vb_nic_stats(dev->nic)->count[VB_STAT_RX_LANE_FRAMES]);
}

static struct vb_peer *find(void)
{
	return vb_peer_find(dev->nic, OWN, OTHER);
}

static bool hears(void)
{
	struct vb_peer *peer = find();

	return peer && atomic_load(&peer->has_rx);
}

/* --- the other side --- */

static void bell_make(struct other *o)
{
	struct vb_bell_key key;

	assert_int_equal(vb_bell_create(&o->bell, &key), 0);
	o->export->bell[0] = key.name;
	o->export->bell[1] = key.word;
}

static void line_make(struct other *o)
{
	int ends[2];

	assert_int_equal(vb_line_create(ends), 0);
	o->line = ends[0];
	o->line_outer = ends[1];
}

static void other_make(struct other *o, uint64_t nonce)
{
	void *memory;

	assert_int_equal(vb_shm_export(&o->export_fd, &memory, sizeof(struct vb_export)), 0);
	o->export = memory;
	o->export->magic = VB_EXPORT_MAGIC;
	o->export->version = VB_EXPORT_VERSION;
	o->export->nonce = nonce;
	bell_make(o);
	line_make(o);
}

static void other_ring(struct other *o)
{
	void *memory;

	assert_int_equal(vb_shm_create(&o->ring_fd, sizeof(struct vb_ring_area)), 0);
	assert_int_equal(vb_shm_reserve(&memory, sizeof(struct vb_ring_area)), 0);
	assert_int_equal(vb_shm_map(memory, o->ring_fd, sizeof(struct vb_ring_area), true), 0);
	o->area = memory;
	vb_ring_tx_init(&o->tx, &o->area->lane[0]);
}

static void other_unring(struct other *o)
{
	vb_shm_unmap(o->area, sizeof(struct vb_ring_area));
	close(o->ring_fd);
}

/* Its process has ended. */
static void other_die(struct other *o)
{
	close(o->bell);
	close(o->line);
	o->bell = o->line = NONE;
}

static void other_unmake(struct other *o)
{
	if (o->bell != NONE)
		other_die(o);
	close(o->line_outer);
	close(o->export_fd);
	vb_shm_unmap(o->export, sizeof(struct vb_export));
}

/* The hub tells us of its ring: with copies of its files. */
static void told_of(const struct other *o, int ring_fd)
{
	const struct vb_hub_peer peer = { .line_fd = dup(o->line_outer),
					  .export_fd = dup(o->export_fd) };

	/* Nobody else keeps that end. */
	vb_peers_ring_came(dev, OTHER, OWN, dup(ring_fd), &peer);
}

static void send_frame(struct other *o)
{
	assert_non_null(vb_ring_reserve(&o->tx, 12, 0));
	memset(o->tx.octets, 0xff, 12);
	vb_ring_publish(&o->tx, 12, 0);
}

/* One that has a ring to us, for the whole test. */
static struct other o;

static int other_begin(void **state)
{
	begin(state);
	other_make(&o, 1);
	other_ring(&o);
	return 0;
}

static int other_end(void **state)
{
	other_unring(&o);
	other_unmake(&o);
	return end(state);
}

#define OTHERS(name) TEST_BETWEEN(name, other_begin, other_end)

/* --- who comes --- */

OTHERS(a_ring_that_comes_is_read)
{
	unsigned fds;

	/* Sent before we hear of it, and after. */
	send_frame(&o);
	fds = descriptors_of(getpid());
	told_of(&o, o.ring_fd);
	assert_true(hears());
	assert_int_equal(frames_taken(), 1);
	send_frame(&o);
	assert_int_equal(frames_taken(), 2);
	/* Of all the files only the line is kept. */
	assert_int_equal(descriptors_of(getpid()), fds + 1);
}

OTHERS(its_bell_is_rung)
{
	struct pollfd p = { .events = POLLIN };

	told_of(&o, o.ring_fd);
	p.fd = o.bell;
	vb_peers_bell(dev, find());
	assert_int_equal(poll(&p, 1, 0), 1);
	vb_bell_hush(o.bell);
	/* It waits for room, asleep: told when we have read. */
	atomic_store(&o.area->lane[0].wants_room, 1);
	atomic_store(&o.export->sleep_epoch, 1);
	send_frame(&o);
	frames_taken();
	frames_taken();
	assert_int_equal(poll(&p, 1, 0), 1);
}

PEERS(files_that_are_no_rings_are_refused)
{
	const size_t bytes = sizeof(struct vb_ring_area);
	struct {
		size_t bytes;
		int seals;
	} bad[] = { { bytes - 4096, F_SEAL_SHRINK | F_SEAL_GROW }, { bytes, F_SEAL_GROW },
		    { bytes, 0 }, { 2 * bytes, F_SEAL_SHRINK | F_SEAL_GROW }, { 0, 0 } };
	unsigned fds;

	other_make(&o, 1);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = memfd_create("bad", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		assert_int_equal(ftruncate(fd, (off_t)bad[i].bytes), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, bad[i].seals), 0);
		fds = descriptors_of(getpid());
		told_of(&o, fd);
		assert_false(hears());
		/* Its line may be kept, once. */
		assert_true(descriptors_of(getpid()) <= fds + (i == 0));
		close(fd);
	}
	/* A good one is welcome all the same. */
	other_ring(&o);
	told_of(&o, o.ring_fd);
	assert_true(hears());
	other_unring(&o);
	other_unmake(&o);
}

PEERS(files_that_are_no_exports_are_refused)
{
	struct other good;
	unsigned fds;

	other_make(&o, 1);
	other_ring(&o);
	for (unsigned i = 0; i < 3; i++) {
		struct vb_hub_peer peer = { .line_fd = dup(o.line_outer) };

		o.export->magic = VB_EXPORT_MAGIC + (i == 0);
		o.export->version = VB_EXPORT_VERSION + (i == 1);
		peer.export_fd = dup(i == 2 ? o.ring_fd : o.export_fd);
		fds = descriptors_of(getpid());
		vb_peers_ring_came(dev, OTHER, OWN, dup(o.ring_fd), &peer);
		assert_false(hears());
		assert_int_equal(descriptors_of(getpid()), fds - 2);
	}
	other_make(&good, 2);
	told_of(&good, o.ring_fd);
	assert_true(hears());
	other_unmake(&good);
	other_unring(&o);
	other_unmake(&o);
}

OTHERS(a_line_that_is_none_is_refused)
{
	struct vb_hub_peer peer;

	peer = (struct vb_hub_peer){ .line_fd = memfd_create("none", MFD_CLOEXEC),
				     .export_fd = dup(o.export_fd) };
	vb_peers_ring_came(dev, OTHER, OWN, dup(o.ring_fd), &peer);
	assert_false(hears());
}

/* The hub died, and the asker asked once more: the later ring counts. */
PEERS(the_same_process_may_come_twice)
{
	struct other again;
	struct vb_peer *peer;
	unsigned fds;

	other_make(&o, 1);
	other_ring(&o);
	told_of(&o, o.ring_fd);
	peer = find();
	again = o;
	other_ring(&again);
	fds = descriptors_of(getpid());
	told_of(&again, again.ring_fd);
	assert_ptr_equal(find(), peer);
	assert_int_equal(descriptors_of(getpid()), fds);
	send_frame(&again);
	assert_int_equal(frames_taken(), 1);
	send_frame(&o);
	assert_int_equal(frames_taken(), 1);
	other_unring(&again);
	other_unring(&o);
	other_unmake(&o);
}

/* --- who goes, and who comes after --- */

PEERS(a_process_that_ends_is_forgotten)
{
	struct vb_peer *peer;
	unsigned fds = descriptors_of(getpid());

	other_make(&o, 1);
	other_ring(&o);
	told_of(&o, o.ring_fd);
	peer = find();
	send_frame(&o);
	other_die(&o);
	vb_peers_hup(dev);
	assert_null(find());
	/* What it had sent was taken in; what it writes now is not seen. */
	send_frame(&o);
	assert_int_equal(frames_taken(), 1);
	other_unring(&o);
	other_unmake(&o);
	assert_int_equal(descriptors_of(getpid()), fds);
	vb_peers_hup(dev);
	/* The object serves the next one. */
	other_make(&o, 2);
	other_ring(&o);
	told_of(&o, o.ring_fd);
	assert_ptr_equal(find(), peer);
	send_frame(&o);
	assert_int_equal(frames_taken(), 2);
	other_unring(&o);
	other_unmake(&o);
}

/* The next owner of the slot comes before its predecessor's bell has told us. */
PEERS(a_successor_is_told_from_its_predecessor)
{
	struct vb_peer *peer;
	struct other heir;

	other_make(&o, 1);
	other_ring(&o);
	told_of(&o, o.ring_fd);
	peer = find();
	other_make(&heir, 2);
	other_ring(&heir);
	told_of(&heir, heir.ring_fd);
	assert_ptr_not_equal(find(), peer);
	peer = find();
	other_die(&o);
	vb_peers_hup(dev);
	assert_ptr_equal(find(), peer);
	send_frame(&heir);
	assert_int_equal(frames_taken(), 1);
	other_unring(&heir);
	other_unmake(&heir);
	other_unring(&o);
	other_unmake(&o);
}

/* Before its bell has told us, somebody wants to connect to whoever has the slot now. */
OTHERS(the_dead_are_not_reached)
{
	struct rlimit before, none;

	told_of(&o, o.ring_fd);
	/* As if we had rings to it as well. */
	atomic_store(&find()->has_tx, true);
	dev->peers.allowed = true;
	assert_int_equal(vb_peers_reach(dev, OWN, OTHER), 0);
	assert_non_null(find());
	other_die(&o);
	/* There is no hub to be asked: without descriptors we do not get that far. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(vb_peers_reach(dev, OWN, OTHER), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(find());
	vb_peers_hup(dev);
}

PEERS(one_that_is_dead_when_it_comes_goes_at_once)
{
	unsigned fds = descriptors_of(getpid());

	other_make(&o, 1);
	other_ring(&o);
	send_frame(&o);
	other_die(&o);
	told_of(&o, o.ring_fd);
	vb_peers_hup(dev);
	assert_null(find());
	/* What it had sent counts nevertheless. */
	assert_int_equal(frames_taken(), 1);
	other_unring(&o);
	other_unmake(&o);
	assert_int_equal(descriptors_of(getpid()), fds);
}

PEERS(many_come_and_go)
{
	unsigned fds = descriptors_of(getpid());

	for (unsigned i = 0; i < 300; i++) {
		other_make(&o, i + 1);
		other_ring(&o);
		told_of(&o, o.ring_fd);
		send_frame(&o);
		if (i % 2)
			assert_int_equal(frames_taken(), i + 1);
		other_die(&o);
		vb_peers_hup(dev);
		assert_int_equal(frames_taken(), i + 1);
		other_unring(&o);
		other_unmake(&o);
	}
	assert_int_equal(descriptors_of(getpid()), fds);
	assert_int_equal(atomic_load(&dev->nic->peering.count), 1);
}

/* --- who means ill --- */

/* All that we wait for is quiet: whoever sleeps, sleeps. */
static void assert_nothing_wakes_us(void)
{
	struct pollfd fds[] = { { .fd = dev->peers.bell_fd, .events = POLLIN },
				{ .fd = dev->peers.hup_fd, .events = POLLIN } };

	assert_int_equal(poll(fds, 2, 0), 0);
}

/* By whatever it can do to the line, nobody else is harmed, and it is heard of once. */
PEERS(whoever_shuts_down_a_line_shuts_himself_out)
{
	static const int ways[] = { SHUT_RD, SHUT_WR, SHUT_RDWR };
	struct other good, bad;

	other_make(&good, 1);
	other_ring(&good);
	told_of(&good, good.ring_fd);
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct vb_hub_peer peer;

		other_make(&bad, 2 + i);
		other_ring(&bad);
		peer = (struct vb_hub_peer){ .line_fd = dup(bad.line_outer),
					     .export_fd = dup(bad.export_fd) };
		vb_peers_ring_came(dev, OTHER + 1, OWN, dup(bad.ring_fd), &peer);
		assert_non_null(vb_peer_find(dev->nic, OWN, OTHER + 1));
		while (send(bad.line, "nonsense", 8, MSG_DONTWAIT) > 0)
			;
		assert_nothing_wakes_us();
		shutdown(bad.line, ways[i]);
		vb_peers_hup(dev);
		assert_nothing_wakes_us();
		assert_true(hears());
		send_frame(&good);
		assert_int_equal(frames_taken(), i + 1);
		vb_peers_bell(dev, find());
		assert_int_equal(poll(&(struct pollfd){ good.bell, POLLIN, 0 }, 1, 0), 1);
		vb_bell_hush(good.bell);
		other_unring(&bad);
		other_unmake(&bad);
		vb_peers_hup(dev);
		assert_nothing_wakes_us();
		assert_null(vb_peer_find(dev->nic, OWN, OTHER + 1));
	}
	other_unring(&good);
	other_unmake(&good);
}

/* Its ring is of no use to it, and its own line: the next time it has others. */
PEERS(whoever_comes_again_and_again_takes_no_room)
{
	struct other many[8];
	unsigned fds = descriptors_of(getpid());

	for (unsigned i = 0; i < 8; i++) {
		/* Each time with an export that it says is its own, and never hangs up. */
		other_make(&many[i], 1 + i);
		other_ring(&many[i]);
		told_of(&many[i], many[i].ring_fd);
		vb_peers_hup(dev);
		assert_true(hears());
	}
	assert_true(atomic_load(&dev->nic->peering.count) <= 2);
	send_frame(&many[7]);
	assert_int_equal(frames_taken(), 1);
	for (unsigned i = 0; i < 8; i++) {
		other_unring(&many[i]);
		other_unmake(&many[i]);
	}
	vb_peers_hup(dev);
	assert_nothing_wakes_us();
	assert_int_equal(descriptors_of(getpid()), fds);
}

/* Rung by the wrong word, or by nobody's hand: the wire is as open as that. */
PEERS(who_has_not_seen_our_export_does_not_wake_us)
{
	struct vb_bell_target target = dev->peers.bell;
	struct vb_bell_key key;
	int fd;

	assert_int_equal(vb_bell_create(&fd, &key), 0);
	target.word++;
	vb_bell_ring(fd, &target);
	assert_nothing_wakes_us();
	vb_bell_ring(fd, &dev->peers.bell);
	assert_int_equal(poll(&(struct pollfd){ dev->peers.bell_fd, POLLIN, 0 }, 1, 0), 1);
	close(fd);
}

/* A ring of which it has let go, as when the hub was too slow for it, says nothing of its life. */
OTHERS(who_gives_up_a_ring_lives)
{
	int ends[2];

	told_of(&o, o.ring_fd);
	/* As if we had a ring to it as well. */
	assert_int_equal(vb_line_create(ends), 0);
	((struct vb_peer_maps *)find()->run)->line[VB_LINE_TX].fd = ends[0];
	close(o.line);
	o.line = ends[1];
	vb_peers_hup(dev);
	assert_non_null(find());
	assert_nothing_wakes_us();
	close(o.line_outer);
	line_make(&o);
	told_of(&o, o.ring_fd);
	send_frame(&o);
	assert_int_equal(frames_taken(), 1);
	close(ends[1]);
	other_die(&o);
	vb_peers_hup(dev);
}

/* --- ourselves --- */

PEERS(we_reach_ourselves_without_a_hub)
{
	struct vb_peer *peer;

	dev->peers.allowed = true;
	assert_int_equal(vb_peers_reach(dev, OWN, OWN), 0);
	peer = vb_peer_find(dev->nic, OWN, OWN);
	assert_non_null(peer);
	assert_true(atomic_load(&peer->has_tx) && atomic_load(&peer->has_rx));
	assert_non_null(vb_ring_reserve(&peer->lane[2].tx, 12, 30000));
	memset(peer->lane[2].tx.octets, 0xff, 12);
	vb_ring_publish(&peer->lane[2].tx, 12, 30000);
	assert_int_equal(frames_taken(), 1);
	/* Asked again, it is still the same ring. */
	assert_int_equal(vb_peers_reach(dev, OWN, OWN), 0);
	assert_int_equal(frames_taken(), 1);
	vb_peers_bell(dev, peer);
	assert_int_equal(poll(&(struct pollfd){ .fd = dev->peers.bell_fd, .events = POLLIN }, 1, 0),
			 1);
}

PEERS(who_is_not_allowed_reaches_nobody)
{
	dev->peers.allowed = false;
	assert_int_equal(vb_peers_reach(dev, OWN, OWN), EOPNOTSUPP);
	assert_int_equal(vb_peers_reach(dev, OWN, OTHER), EOPNOTSUPP);
	dev->peers.allowed = true;
	/* The hub's own slot. */
	assert_int_equal(vb_peers_reach(dev, OWN, 0), EOPNOTSUPP);
}

TEST(settings_decide_what_is_offered)
{
	static const struct {
		enum vb_env_link link;
		const char *fault, *pcap;
		bool shm;
	} rows[] = {
		{ VB_ENV_LINK_ANY, NULL, NULL, true }, { VB_ENV_LINK_ANY, "loss=1%", NULL, false },
		{ VB_ENV_LINK_ANY, NULL, "a.pcap", false }, { VB_ENV_LINK_UDP, NULL, NULL, false },
		{ VB_ENV_LINK_SHM, NULL, NULL, true }, { VB_ENV_LINK_SHM, "loss=1%", NULL, true },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vb_device *d = calloc(1, sizeof(*d));
		unsigned fds = descriptors_of(getpid());

		assert_non_null(d);
		d->env.link = rows[i].link;
		d->env.fault = rows[i].fault;
		d->env.pcap = rows[i].pcap;
		assert_int_equal(vb_peers_open(d), 0);
		assert_int_equal(vb_peers_offer(d).shm, rows[i].shm);
		vb_peers_close(d);
		free(d);
		assert_int_equal(descriptors_of(getpid()), fds);
	}
}
