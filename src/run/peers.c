/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/failure.h"
#include "base/fd.h"
#include "base/loose.h"
#include "hub/channel.h"
#include "nic/way/peer.h"
#include "nic/way/way.h"
#include "run/process/cancel.h"
#include "run/device.h"
#include "run/faults/rings.h"
#include "run/process/log.h"

enum { NONE = -1, HUPS_PER_TURN = 16 };

/* Without permission for files of this size there is no shared memory: all goes by the wire. */
static int export_make(struct vb_peers *peers)
{
	int rc = vb_shm_export(&peers->export_fd, &peers->export, sizeof(struct vb_export));

	if (rc != EFBIG)
		return rc;
	vb_log("no shared memory: RLIMIT_FSIZE is too low");
	peers->allowed = false;
	peers->why = VB_HUB_LINK_FSIZE;
	rc = vb_shm_create(&peers->export_fd, 0);
	if (rc != 0)
		return rc;
	rc = vb_shm_reserve(&peers->export, sizeof(struct vb_export));
	if (rc != 0)
		vb_fd_close(&peers->export_fd);
	return rc;
}

/* Why the user's settings forbid shared memory. */
static enum vb_hub_link_why why_not(const struct vb_env *env)
{
	if (env->link == VB_ENV_LINK_UDP)
		return VB_HUB_LINK_SET;
	if (env->link == VB_ENV_LINK_SHM)
		return VB_HUB_LINK_SHM;
	if (env->fault)
		return VB_HUB_LINK_FAULT;
	return env->net ? VB_HUB_LINK_NET : env->pcap ? VB_HUB_LINK_PCAP : VB_HUB_LINK_SHM;
}

/* A socket whose only purpose is that the kernel knows who made it. */
static int token_make(int *fd)
{
	int ends[2], rc = vb_line_create(ends);

	if (rc != 0)
		return rc;
	close(ends[1]);
	*fd = ends[0];
	return 0;
}

static int files_make(struct vb_peers *peers, struct vb_bell_key *bell)
{
	int rc;

	peers->bell_fd = peers->token_fd = peers->hup_fd = NONE;
	peers->handing = (struct vb_hub_ring_files){ NONE, NONE, NONE };
	rc = vb_bell_create(&peers->bell_fd, bell);
	if (rc == 0)
		rc = token_make(&peers->token_fd);
	if (rc != 0)
		return rc;
	vb_bell_aim(&peers->bell, bell);
	peers->hup_fd = epoll_create1(EPOLL_CLOEXEC);
	return peers->hup_fd < 0 ? vb_failed(errno, "epoll_create1") : 0;
}

static void files_close(struct vb_peers *peers)
{
	vb_fd_close(&peers->hup_fd);
	vb_hub_ring_files_close(&peers->handing);
	vb_fd_close(&peers->token_fd);
	vb_fd_close(&peers->bell_fd);
}

int vb_peers_open(struct vb_device *dev)
{
	struct vb_peers *peers = &dev->peers;
	struct vb_bell_key bell;
	struct vb_export *export;
	int rc;

	vb_lock_init(&peers->lock, VB_RANK_RINGS);
	vb_lock_init(&peers->bell_lock, VB_RANK_BELLS);
	peers->why = why_not(&dev->env);
	peers->allowed = peers->why == VB_HUB_LINK_SHM;
	rc = export_make(peers);
	if (rc != 0)
		return rc;
	rc = files_make(peers, &bell);
	if (rc != 0) {
		files_close(peers);
		vb_fd_close(&peers->export_fd);
		vb_shm_unmap(peers->export, sizeof(struct vb_export));
		return rc;
	}
	export = peers->export;
	export->magic = VB_EXPORT_MAGIC;
	export->version = VB_EXPORT_VERSION;
	export->pid = (uint32_t)getpid();
	if (getrandom(&export->nonce, sizeof(export->nonce), GRND_NONBLOCK) < 0)
		export->nonce = vb_now_ns() ^ (uint64_t)getpid() << 40;
	peers->nonce = export->nonce;
	export->nonce_address = (uintptr_t)&peers->nonce;
	export->self = (uintptr_t)export;
	export->bell[0] = bell.name;
	export->bell[1] = bell.word;
	return 0;
}

static void close_fds(struct vb_peers *peers)
{
	for (struct vb_peer_maps *maps = peers->maps; maps; maps = maps->next) {
		for (unsigned i = 0; i < VB_LINES; i++)
			vb_fd_close(&maps->line[i].fd);
		vb_direct_part(&maps->direct);
	}
	for (struct vb_peers_ring *ring = peers->kept; ring; ring = ring->next) {
		vb_fd_close(&ring->fd);
		vb_fd_close(&ring->peer.line_fd);
		vb_fd_close(&ring->peer.export_fd);
	}
	files_close(peers);
	vb_fd_close(&peers->export_fd);
}

void vb_peers_close(struct vb_device *dev)
{
	struct vb_peers *peers = &dev->peers;

	close_fds(peers);
	while (peers->kept) {
		struct vb_peers_ring *ring = peers->kept;

		peers->kept = ring->next;
		free(ring);
	}
	while (peers->maps) {
		struct vb_peer_maps *maps = peers->maps;

		peers->maps = maps->next;
		vb_shm_unmap(maps->tx, sizeof(struct vb_ring_area));
		vb_shm_unmap(maps->rx, sizeof(struct vb_ring_area));
		vb_shm_unmap(maps->export, sizeof(struct vb_export));
		free(maps);
	}
	vb_shm_unmap(peers->export, sizeof(struct vb_export));
	vb_lock_fini(&peers->bell_lock);
	vb_lock_fini(&peers->lock);
}

void vb_peers_forget(struct vb_device *dev)
{
	struct vb_peers *peers = &dev->peers;

	close_fds(peers);
	for (struct vb_peer_maps *maps = peers->maps; maps; maps = maps->next) {
		vb_shm_forget(maps->tx, sizeof(struct vb_ring_area));
		vb_shm_forget(maps->rx, sizeof(struct vb_ring_area));
		vb_shm_forget(maps->export, sizeof(struct vb_export));
	}
	vb_shm_forget(peers->export, sizeof(struct vb_export));
}

struct vb_hub_offer vb_peers_offer(const struct vb_device *dev)
{
	return (struct vb_hub_offer){
		.token_fd = dev->peers.token_fd,
		.export_fd = dev->peers.export_fd,
		.shm = dev->peers.allowed,
		.why = dev->peers.why,
	};
}

/* --- mapping --- */

static struct vb_peer_maps *maps_make(struct vb_peers *peers, struct vb_peer *peer)
{
	struct vb_peer_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return NULL;
	for (unsigned i = 0; i < VB_LINES; i++)
		maps->line[i] = (struct vb_peer_line){ maps, NONE };
	vb_direct_meet(&maps->direct, 0, 0, 0);
	if (vb_shm_reserve(&maps->tx, sizeof(struct vb_ring_area)))
		goto free_maps;
	if (vb_shm_reserve(&maps->rx, sizeof(struct vb_ring_area)))
		goto unmap_tx;
	if (vb_shm_reserve(&maps->export, sizeof(struct vb_export)))
		goto unmap_rx;
	maps->peer = peer;
	peer->run = maps;
	maps->next = peers->maps;
	peers->maps = maps;
	return maps;
unmap_rx:
	vb_shm_unmap(maps->rx, sizeof(struct vb_ring_area));
unmap_tx:
	vb_shm_unmap(maps->tx, sizeof(struct vb_ring_area));
free_maps:
	free(maps);
	return NULL;
}

/* The peer object for these slots, with its memory reserved. dev->peers.lock held. */
static int peer_get(struct vb_device *dev, uint16_t own_slot, uint16_t slot,
		    struct vb_peer_maps **maps)
{
	struct vb_peer *peer = vb_peer_get(dev->nic, own_slot, slot);

	if (!peer)
		return ENOMEM;
	*maps = peer->run ? peer->run : maps_make(&dev->peers, peer);
	return *maps ? 0 : ENOMEM;
}

/* Takes in what the peer says in its export, and its bell. */
static int introduce(struct vb_peer_maps *maps, const struct vb_hub_peer *peer,
		     const struct stat *st, vb_lock *bell_lock)
{
	const struct vb_export *export = maps->export;
	int rc = vb_shm_map(maps->export, peer->export_fd, sizeof(*export), false);

	if (rc != 0)
		return rc;
	if (export->magic != VB_EXPORT_MAGIC || export->version != VB_EXPORT_VERSION) {
		vb_shm_blank(maps->export, sizeof(*export));
		return EPROTO;
	}
	vb_lock_take(bell_lock);
	vb_bell_aim(&maps->bell, &(struct vb_bell_key){ export->bell[0], export->bell[1] });
	maps->known = true;
	vb_lock_drop(bell_lock);
	maps->device = st->st_dev;
	maps->inode = st->st_ino;
	/* An export that others could have mapped for writing proves nothing. */
	vb_direct_meet(&maps->direct, vb_shm_is_export(peer->export_fd) ? peer->pid : 0, st->st_dev,
		       st->st_ino);
	return 0;
}

/* --- lines --- */

/* Makes fd our end of the ring's line. Takes over the descriptor if it is valid. */
static int line_set(struct vb_peers *peers, struct vb_peer_line *line, int fd)
{
	struct epoll_event event = { .events = EPOLLRDHUP, .data.ptr = line };
	int before;

	if (epoll_ctl(peers->hup_fd, EPOLL_CTL_ADD, fd, &event))
		return EPROTO;
	vb_lock_take(&peers->bell_lock);
	before = line->fd;
	line->fd = fd;
	vb_lock_drop(&peers->bell_lock);
	if (before == NONE)
		return 0;
	/* Removed explicitly: a forked child's copy would keep it in the set. */
	epoll_ctl(peers->hup_fd, EPOLL_CTL_DEL, before, NULL);
	close(before);
	return 0;
}

static void line_close(struct vb_peers *peers, struct vb_peer_line *line)
{
	vb_lock_take(&peers->bell_lock);
	if (line->fd != NONE)
		epoll_ctl(peers->hup_fd, EPOLL_CTL_DEL, line->fd, NULL);
	vb_fd_close(&line->fd);
	vb_lock_drop(&peers->bell_lock);
}

/*
 * Cuts the lines of a peer whose slot has a new owner: it is gone, and vb_peers_hup() will see
 * that.
 */
static void lines_cut(struct vb_peers *peers, struct vb_peer_maps *maps)
{
	vb_lock_take(&peers->bell_lock);
	for (unsigned i = 0; i < VB_LINES; i++) {
		if (maps->line[i].fd != NONE)
			vb_line_cut(maps->line[i].fd);
	}
	vb_lock_drop(&peers->bell_lock);
}

/*
 * The line that tells whether the peer lives: the line of our ring to it. For a peer that only
 * sends to us, the line of its ring to us. If both exist, a cut line of its ring proves nothing:
 * the peer may have given that ring up and tried again.
 */
static struct vb_peer_line *life_line(struct vb_peer_maps *maps)
{
	return &maps->line[maps->line[VB_LINE_TX].fd != NONE ? VB_LINE_TX : VB_LINE_RX];
}

/*
 * The peer object for a process that has just introduced itself. An object of a process that had
 * the slot before is removed. Closes the peer's export.
 */
static int peer_meet(struct vb_device *dev, uint16_t own_slot, uint16_t slot,
		     struct vb_hub_peer peer, struct vb_peer_maps **maps)
{
	int rc = peer_get(dev, own_slot, slot, maps);
	bool same = false;
	struct stat st;

	if (rc == 0 && fstat(peer.export_fd, &st))
		rc = EPROTO;
	if (rc == 0 && (*maps)->known) {
		/* A file in memory never gets the inode number of an earlier one. */
		same = (*maps)->device == st.st_dev && (*maps)->inode == st.st_ino;
		if (!same) {
			vb_peer_unlist((*maps)->peer);
			lines_cut(&dev->peers, *maps);
			rc = peer_get(dev, own_slot, slot, maps);
		}
	}
	if (rc == 0 && !same)
		rc = introduce(*maps, &peer, &st, &dev->peers.bell_lock);
	close(peer.export_fd);
	return rc;
}

/* --- rings --- */

/* Makes a ring between two slots of ours, private to this process. */
static int reach_self(struct vb_device *dev, uint16_t own_slot, uint16_t slot)
{
	struct vb_peer_maps *to, *from;
	int rc = peer_get(dev, own_slot, slot, &to);

	if (rc == 0)
		rc = peer_get(dev, slot, own_slot, &from);
	if (rc != 0)
		return rc;
	vb_peer_rx_pause(from->peer);
	vb_peer_rx_set(from->peer, vb_faults_rx(dev->faults, from->peer, to->tx),
		       dev->peers.export);
	vb_peer_rx_resume(from->peer);
	vb_peer_tx_set(to->peer, vb_faults_tx(dev->faults, to->peer, to->tx), dev->peers.export);
	return 0;
}

/* Asks the hub; the answer comes later (answer_came). dev->peers.lock held. */
static int reach_other(struct vb_device *dev, uint16_t own_slot, uint16_t slot)
{
	struct vb_hub_ring_files *files = &dev->peers.handing;
	int ends[2], rc;

	rc = vb_shm_create(&files->ring_fd, sizeof(struct vb_ring_area));
	if (rc != 0)
		return rc;
	rc = vb_line_create(ends);
	if (rc == 0) {
		files->line_fd = ends[0];
		files->far_fd = ends[1];
		rc = vb_hub_client_ask(dev->hub, own_slot, slot, files);
	}
	vb_hub_ring_files_close(files);
	return rc;
}

static bool slot_is_ours(struct vb_device *dev, uint16_t slot)
{
	unsigned count = atomic_load_explicit(&dev->port_count, memory_order_acquire);

	for (unsigned i = 0; i < count; i++) {
		if (dev->ports[i].slot == slot)
			return true;
	}
	return false;
}

bool vb_peers_is_dead(struct vb_device *dev, const struct vb_peer *peer)
{
	struct vb_peer_maps *maps = peer->run;
	bool dead = false;

	vb_lock_take(&dev->peers.bell_lock);
	if (maps && life_line(maps)->fd != NONE)
		dead = vb_line_is_cut(life_line(maps)->fd);
	vb_lock_drop(&dev->peers.bell_lock);
	return dead;
}

int vb_peers_reach(void *arg, uint16_t own_slot, uint16_t slot)
{
	struct vb_device *dev = arg;
	const struct vb_hub_peer nobody = {.why = dev->peers.why};
	bool asked = false;
	struct vb_peer *peer;
	int cancel, rc = 0;

	if (slot == 0)
		return EOPNOTSUPP;
	cancel = vb_cancel_defer();
	if (!dev->peers.allowed) {
		vb_links_decided(&dev->links, own_slot, slot, EOPNOTSUPP, &nobody);
		vb_cancel_restore(cancel);
		return EOPNOTSUPP;
	}
	vb_loose_begin();
	vb_lock_take(&dev->peers.lock);
	peer = vb_peer_find(dev->nic, own_slot, slot);
	if (peer && vb_peers_is_dead(dev, peer)) {
		vb_peer_unlist(peer);
		peer = NULL;
	}
	/*
	 * With the lock held, so that an answer is taken in before the same question can be asked
	 * again.
	 */
	if (!peer || !atomic_load(&peer->has_tx)) {
		asked = !slot_is_ours(dev, slot);
		rc = asked ? reach_other(dev, own_slot, slot) : reach_self(dev, own_slot, slot);
	}
	vb_lock_drop(&dev->peers.lock);
	vb_loose_end();
	if (asked && rc != EINPROGRESS)
		vb_links_decided(&dev->links, own_slot, slot, rc, &nobody);
	vb_cancel_restore(cancel);
	return rc;
}

static void await(void *arg, uint16_t own_slot, uint16_t slot)
{
	struct vb_device *dev = arg;
	uint64_t now_ns = vb_hub_now_ns(), until_ns;
	int cancel = vb_cancel_defer();

	/* There is no alternative to wait less for. */
	if (dev->env.link == VB_ENV_LINK_SHM)
		until_ns = now_ns + VB_PEERS_PATIENCE_NS;
	else
		until_ns = vb_min_u64(now_ns, vb_hub_client_asks_since(dev->hub)) +
			   VB_PEERS_WAIT_NS;
	vb_loose_begin();
	vb_hub_client_await(dev->hub, own_slot, slot, until_ns);
	vb_loose_end();
	vb_cancel_restore(cancel);
}

static int ring_take(struct vb_device *dev, struct vb_peer_maps *maps, int ring_fd)
{
	int rc;

	vb_peer_rx_pause(maps->peer);
	vb_faults_part(dev->faults, maps->peer, false);
	rc = vb_shm_map(maps->rx, ring_fd, sizeof(struct vb_ring_area), true);
	if (rc == 0)
		vb_peer_rx_set(maps->peer, vb_faults_rx(dev->faults, maps->peer, maps->rx),
			       maps->export);
	vb_peer_rx_resume(maps->peer);
	return rc;
}

static void ring_came(struct vb_device *dev, struct vb_peers_ring ring)
{
	struct vb_peer_maps *maps;
	int rc;

	vb_lock_take(&dev->peers.lock);
	rc = peer_meet(dev, ring.to, ring.from, ring.peer, &maps);
	if (rc == 0)
		rc = line_set(&dev->peers, &maps->line[VB_LINE_RX], ring.peer.line_fd);
	if (rc != 0)
		close(ring.peer.line_fd);
	else if (!vb_peer_hold(maps->peer))
		rc = EPIPE;
	vb_lock_drop(&dev->peers.lock);
	/* Taking in this peer's frames may require reaching another peer: drop the lock first. */
	if (rc == 0) {
		rc = ring_take(dev, maps, ring.fd);
		vb_peer_drop(maps->peer);
	}
	close(ring.fd);
	if (rc != 0)
		vb_log("slot %u: its ring cannot be used: %s", ring.from, strerror(rc));
}

/* XRC and DC answer by the way that the request came: make sure there is a ring back. */
static int reach_back(struct vb_device *dev, uint16_t own_slot, uint16_t slot)
{
	return vb_peers_back_wanted(dev->nic) ? vb_peers_reach(dev, own_slot, slot) : 0;
}

/*
 * Keeps the ring until there is a ring back, or it is clear that there will be none. False: no
 * memory.
 */
static bool ring_keep(struct vb_device *dev, const struct vb_peers_ring *ring)
{
	struct vb_peers_ring *kept = malloc(sizeof(*kept)), **at = &dev->peers.kept;

	if (!kept)
		return false;
	*kept = *ring;
	kept->next = NULL;
	vb_lock_take(&dev->peers.lock);
	while (*at)
		at = &(*at)->next;
	*at = kept;
	vb_lock_drop(&dev->peers.lock);
	return true;
}

/* Takes out the ring kept for that answer; NULL if there is none. */
static struct vb_peers_ring *ring_unkeep(struct vb_device *dev, uint16_t own_slot, uint16_t slot)
{
	struct vb_peers_ring **at = &dev->peers.kept, *ring;

	vb_lock_take(&dev->peers.lock);
	while (*at && ((*at)->to != own_slot || (*at)->from != slot))
		at = &(*at)->next;
	ring = *at;
	if (ring)
		*at = ring->next;
	vb_lock_drop(&dev->peers.lock);
	return ring;
}

/* A line must be a socket: nothing else reports its peer's death. */
static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

void vb_peers_ring_came(void *arg, uint16_t from, uint16_t to, int ring_fd,
			const struct vb_hub_peer *peer)
{
	struct vb_device *dev = arg;
	struct vb_peers_ring ring = {.from = from, .to = to, .fd = ring_fd, .peer = *peer};

	if (!is_socket(ring.peer.line_fd)) {
		vb_fd_close(&ring.peer.line_fd);
		vb_fd_close(&ring.peer.export_fd);
		vb_fd_close(&ring.fd);
		return;
	}
	/*
	 * The wire would do for the answers; with VERBATIM_LINK=shm the ring back must come first.
	 */
	if (reach_back(dev, to, from) == EINPROGRESS && dev->env.link == VB_ENV_LINK_SHM &&
	    ring_keep(dev, &ring))
		return;
	ring_came(dev, ring);
	/* A thread that opened a domain meanwhile has not seen this peer. */
	reach_back(dev, to, from);
}

static void answer_came(void *arg, uint16_t from, uint16_t to, struct vb_hub_ring_files *files,
			int rc, const struct vb_hub_peer *peer)
{
	struct vb_device *dev = arg;
	struct vb_peer_maps *maps;

	if (rc == 0) {
		vb_lock_take(&dev->peers.lock);
		rc = peer_meet(dev, from, to, *peer, &maps);
		if (rc == 0)
			rc = line_set(&dev->peers, &maps->line[VB_LINE_TX], files->line_fd);
		if (rc == 0) {
			files->line_fd = NONE;
			vb_faults_part(dev->faults, maps->peer, true);
			rc = vb_shm_map(maps->tx, files->ring_fd, sizeof(struct vb_ring_area),
					true);
		}
		if (rc == 0)
			vb_peer_tx_set(maps->peer,
				       vb_faults_tx(dev->faults, maps->peer, maps->tx),
				       maps->export);
		vb_lock_drop(&dev->peers.lock);
	}
	vb_links_decided(&dev->links, from, to, rc, peer);
}

static void answer_is_over(void *arg, uint16_t from, uint16_t to, int rc)
{
	struct vb_device *dev = arg;
	struct vb_peers_ring *ring;

	while ((ring = ring_unkeep(dev, from, to))) {
		ring_came(dev, *ring);
		free(ring);
	}
	vb_peer_answered(dev->nic, from, to, rc);
}

const struct vb_hub_answers vb_peers_answers = {answer_came, answer_is_over};

/* --- bells --- */

void vb_peers_bell(void *arg, struct vb_peer *peer)
{
	struct vb_device *dev = arg;
	struct vb_peer_maps *maps = peer->run;
	int cancel = vb_cancel_defer();

	vb_lock_take(&dev->peers.bell_lock);
	vb_bell_ring(dev->peers.bell_fd, maps->known ? &maps->bell : &dev->peers.bell);
	vb_lock_drop(&dev->peers.bell_lock);
	vb_cancel_restore(cancel);
}

void vb_peers_wake_self(struct vb_device *dev)
{
	int cancel = vb_cancel_defer();

	vb_bell_ring(dev->peers.bell_fd, &dev->peers.bell);
	vb_cancel_restore(cancel);
}

/* Handles a cut line. Returns the peer if it is gone; NULL if it lives, or the line was not cut. */
static struct vb_peer *line_ended(struct vb_peers *peers, struct vb_peer_line *line)
{
	/* The line may belong to another peer by now. */
	if (line->fd == NONE || !vb_line_is_cut(line->fd))
		return NULL;
	if (line != life_line(line->maps)) {
		line_close(peers, line);
		return NULL;
	}
	epoll_ctl(peers->hup_fd, EPOLL_CTL_DEL, line->fd, NULL);
	return line->maps->peer;
}

void vb_peers_hup(struct vb_device *dev)
{
	struct epoll_event events[HUPS_PER_TURN];
	int count = epoll_wait(dev->peers.hup_fd, events, HUPS_PER_TURN, 0);

	for (int i = 0; i < count; i++) {
		struct vb_peer *peer;

		/* The peer may have gone while it was being introduced. */
		vb_lock_take(&dev->peers.lock);
		peer = line_ended(&dev->peers, events[i].data.ptr);
		vb_lock_drop(&dev->peers.lock);
		if (!peer)
			continue;
		vb_faults_flush(dev->faults, true);
		vb_peer_gone(peer);
	}
}

static void release(void *arg, struct vb_peer *peer)
{
	struct vb_device *dev = arg;
	struct vb_peer_maps *maps = peer->run;

	if (!maps)
		return;
	vb_faults_part(dev->faults, peer, true);
	vb_faults_part(dev->faults, peer, false);
	vb_shm_blank(maps->tx, sizeof(struct vb_ring_area));
	vb_shm_blank(maps->rx, sizeof(struct vb_ring_area));
	vb_shm_blank(maps->export, sizeof(struct vb_export));
	vb_lock_take(&dev->peers.bell_lock);
	maps->known = false;
	vb_lock_drop(&dev->peers.bell_lock);
	vb_direct_part(&maps->direct);
	for (unsigned i = 0; i < VB_LINES; i++)
		line_close(&dev->peers, &maps->line[i]);
}

const struct vb_host_peers vb_peers_host = {
	.reach = vb_peers_reach,
	.await = await,
	.bell = vb_peers_bell,
	.release = release,
};
