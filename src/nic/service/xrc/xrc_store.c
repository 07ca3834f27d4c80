/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/service/xrc/xrc_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/check.h"
#include "base/torn.h"
#include "engine/resp.h"

_Static_assert(sizeof(struct vb_xrc_attr) % 8 == 0 && _Alignof(struct vb_xrc_attr) == 8,
	       "what vb_torn_write() takes");

/* Stands for values that no process of ours writes. */
static const struct vb_xrc_attr nonsense = {
	.attr = { .qp_state = IBV_QPS_ERR,
		  .path_mtu = IBV_MTU_256,
		  .path_mig_state = IBV_MIG_MIGRATED },
};

/* Checked before they are used as bool: other values would be undefined behaviour. */
static bool flags_are_ours(const struct vb_xrc_attr *at)
{
	const bool *flags[] = { &at->path.local, &at->has_alt, &at->migration.alt.local,
				&at->migration.old.local, &at->migration.has_old,
				&at->migration.refused };
	uint8_t flag;

	for (unsigned i = 0; i < VB_ARRAY_LEN(flags); i++) {
		memcpy(&flag, flags[i], sizeof(flag));
		if (flag > 1)
			return false;
	}
	return true;
}

/* The bounds of vb_qp_values_check(); unset members are 0. */
static bool at_is_ours(const struct vb_xrc_attr *at)
{
	const struct ibv_qp_attr *attr = &at->attr;
	bool connected = attr->qp_state > IBV_QPS_INIT && attr->qp_state < IBV_QPS_ERR;

	return flags_are_ours(at) && attr->qp_state <= IBV_QPS_ERR &&
	       attr->path_mtu <= IBV_MTU_4096 &&
	       (attr->path_mtu >= IBV_MTU_256 || !connected) && attr->port_num <= VB_PORTS &&
	       attr->max_rd_atomic <= VB_RD_ATOMIC_MAX &&
	       attr->max_dest_rd_atomic <= VB_RD_ATOMIC_MAX && attr->min_rnr_timer <= 31 &&
	       attr->timeout <= 31 && attr->alt_timeout <= 31 && attr->alt_port_num <= VB_PORTS &&
	       attr->retry_cnt <= 7 && attr->rnr_retry <= 7 &&
	       attr->path_mig_state <= IBV_MIG_ARMED && attr->dest_qp_num <= 0xffffff &&
	       attr->rq_psn <= 0xffffff && attr->sq_psn <= 0xffffff;
}

void vb_xrc_rcv_get(const struct vb_xrc_rcv *rcv, struct vb_xrc_attr *at)
{
	vb_torn_read(at, &rcv->at, sizeof(*at));
	if (!at_is_ours(at))
		*at = nonsense;
}

static void at_write(struct vb_xrc_rcv *rcv, const struct vb_xrc_attr *at)
{
	vb_torn_write(&rcv->at, at, sizeof(*at));
}

void vb_xrc_store_init(struct vb_xrc_store *store)
{
	store->version = VB_XRC_VERSION;
	store->magic = VB_XRC_MAGIC;
}

void vb_xrc_store_repair(struct vb_xrc_store *store)
{
	for (unsigned i = 0; i < vb_xrc_rcvs(store); i++) {
		struct vb_xrc_rcv *rcv = &store->rcv[i];
		struct vb_xrc_attr at;

		if (!(atomic_load(&rcv->seq) & 1))
			continue;
		vb_xrc_rcv_get(rcv, &at);
		at.attr.qp_state = IBV_QPS_ERR;
		at_write(rcv, &at);
		atomic_fetch_add(&rcv->seq, 1);
	}
}

/* --- receive QPs --- */

static void rcv_free(struct vb_xrc_rcv *rcv)
{
	atomic_store(&rcv->domain, 0);
	memset(rcv->open, 0, sizeof(rcv->open));
	memset(rcv->registered, 0, sizeof(rcv->registered));
	rcv->kept = 0;
	vb_xrc_rcv_state_set(rcv, IBV_QPS_RESET);
	atomic_fetch_add(&rcv->life, 1);
}

static bool any(const uint16_t refs[VB_SLOTS])
{
	for (unsigned i = 0; i < VB_SLOTS; i++) {
		if (refs[i])
			return true;
	}
	return false;
}

static void free_if_unneeded(struct vb_xrc_rcv *rcv)
{
	bool needed = rcv->kept || any(rcv->open);

	for (unsigned i = 0; i < VB_SLOTS && !needed; i++)
		needed = rcv->registered[i];
	if (!needed)
		rcv_free(rcv);
}

/* Readers compare seq before and after, so it is odd before the first octet changes. */
static void write_begin(struct vb_xrc_rcv *rcv)
{
	atomic_fetch_add(&rcv->seq, 1);
	atomic_thread_fence(memory_order_seq_cst);
}

static void write_end(struct vb_xrc_rcv *rcv)
{
	atomic_thread_fence(memory_order_seq_cst);
	atomic_fetch_add(&rcv->seq, 1);
}

void vb_xrc_rcv_write(struct vb_xrc_rcv *rcv, const struct vb_xrc_attr *at, bool begin)
{
	struct vb_xrc_at start = { .epsn = at->attr.rq_psn };

	write_begin(rcv);
	at_write(rcv, at);
	if (begin) {
		atomic_store(&rcv->word, vb_xrc_word(start));
		atomic_fetch_add(&rcv->life, 1);
	}
	write_end(rcv);
}

void vb_xrc_rcv_state_set(struct vb_xrc_rcv *rcv, enum ibv_qp_state state)
{
	struct vb_xrc_attr at;

	vb_xrc_rcv_get(rcv, &at);
	at.attr.qp_state = state;
	vb_xrc_rcv_write(rcv, &at, false);
}

bool vb_xrc_rcv_read(const struct vb_xrc_rcv *rcv, struct vb_xrc_attr *at, uint32_t *seq)
{
	*seq = atomic_load(&rcv->seq);
	if (*seq & 1)
		return false;
	vb_xrc_rcv_get(rcv, at);
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&rcv->seq) == *seq;
}

int vb_xrc_rcv_make(struct vb_xrc_store *store, uint64_t domain, uint16_t slot, uint32_t *qpn)
{
	static const struct vb_xrc_attr reset = { .attr.path_mig_state = IBV_MIG_MIGRATED };
	const uint32_t places = VB_XRC_RCVS_MAX - VB_XRC_INDEX_FIRST;

	/* Continue from the last number: an old packet must not hit a new QP. */
	for (uint32_t i = 0; i < places; i++) {
		uint32_t index = VB_XRC_INDEX_FIRST + store->next_rcv++ % places;
		struct vb_xrc_rcv *rcv = &store->rcv[index];

		if (atomic_load(&rcv->domain))
			continue;
		if (index >= store->rcvs_top)
			store->rcvs_top = index + 1;
		vb_xrc_rcv_write(rcv, &reset, true);
		memset(rcv->open, 0, sizeof(rcv->open));
		rcv->open[slot] = 1;
		atomic_store(&rcv->domain, domain);
		*qpn = index;
		return 0;
	}
	return ENOMEM;
}

int vb_xrc_rcv_open(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, qpn);

	if (!rcv || atomic_load(&rcv->domain) != domain)
		return EINVAL;
	if (rcv->open[slot] == UINT16_MAX)
		return ENOMEM;
	rcv->open[slot]++;
	return 0;
}

void vb_xrc_rcv_close(struct vb_xrc_store *store, uint32_t qpn, uint16_t slot)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, qpn);

	if (!rcv || !atomic_load(&rcv->domain) || !rcv->open[slot])
		return;
	rcv->open[slot]--;
	free_if_unneeded(rcv);
}

int vb_xrc_rcv_register(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, qpn);

	if (!rcv || atomic_load(&rcv->domain) != domain)
		return EINVAL;
	rcv->registered[slot] = 1;
	return 0;
}

int vb_xrc_rcv_unregister(struct vb_xrc_store *store, uint64_t domain, uint32_t qpn, uint16_t slot)
{
	struct vb_xrc_rcv *rcv = vb_xrc_rcv_of(store, qpn);

	if (!rcv || atomic_load(&rcv->domain) != domain || !rcv->registered[slot])
		return EINVAL;
	rcv->registered[slot] = 0;
	free_if_unneeded(rcv);
	return 0;
}

/* --- domains --- */

static struct vb_xrc_domain *domain_of(struct vb_xrc_store *store, uint64_t id)
{
	for (unsigned i = 0; i < vb_xrc_domains(store); i++) {
		if (atomic_load(&store->domain[i].id) == id)
			return &store->domain[i];
	}
	return NULL;
}

static struct vb_xrc_domain *domain_place(struct vb_xrc_store *store)
{
	struct vb_xrc_domain *domain = domain_of(store, 0);

	uint32_t top = vb_xrc_domains(store);

	if (domain || top == VB_XRC_DOMAINS_MAX)
		return domain;
	store->domains_top = top + 1;
	return &store->domain[top];
}

static struct vb_xrc_domain *domain_find(struct vb_xrc_store *store, const uint64_t file[2])
{
	for (unsigned i = 0; i < vb_xrc_domains(store); i++) {
		struct vb_xrc_domain *domain = &store->domain[i];

		if (atomic_load(&domain->id) && domain->has_file && domain->dev == file[0] &&
		    domain->ino == file[1])
			return domain;
	}
	return NULL;
}

static void domain_free_if_unused(struct vb_xrc_store *store, struct vb_xrc_domain *domain)
{
	uint64_t id = atomic_load(&domain->id);

	if (any(domain->refs))
		return;
	for (unsigned i = 0; i < vb_xrc_rcvs(store); i++) {
		if (atomic_load(&store->rcv[i].domain) == id)
			rcv_free(&store->rcv[i]);
	}
	atomic_store(&domain->id, 0);
}

int vb_xrc_domain_open(struct vb_xrc_store *store, const uint64_t file[2], int flags,
		       uint16_t slot, uint64_t *id)
{
	struct vb_xrc_domain *domain = file ? domain_find(store, file) : NULL;

	if (!file && !(flags & O_CREAT))
		return EINVAL;
	if (!domain && !(flags & O_CREAT))
		return ENOENT;
	if (domain && (flags & O_CREAT) && (flags & O_EXCL))
		return EEXIST;
	if (!domain) {
		domain = domain_place(store);
		if (!domain)
			return ENOMEM;
		domain->has_file = file != NULL;
		domain->dev = file ? file[0] : 0;
		domain->ino = file ? file[1] : 0;
		memset(domain->refs, 0, sizeof(domain->refs));
		atomic_store(&domain->id, ++store->last_id);
	}
	if (domain->refs[slot] == UINT16_MAX)
		return ENOMEM;
	domain->refs[slot]++;
	*id = atomic_load(&domain->id);
	return 0;
}

void vb_xrc_domain_close(struct vb_xrc_store *store, uint64_t id, uint16_t slot)
{
	struct vb_xrc_domain *domain = domain_of(store, id);

	if (!domain || !domain->refs[slot])
		return;
	domain->refs[slot]--;
	domain_free_if_unused(store, domain);
}

bool vb_xrc_collect(struct vb_xrc_store *store, uint16_t slot)
{
	bool had = false;

	/* A receive QP stays as long as its domain, even if its maker is dead. */
	for (unsigned i = 0; i < vb_xrc_rcvs(store); i++) {
		if (atomic_load(&store->rcv[i].domain))
			store->rcv[i].open[slot] = store->rcv[i].registered[slot] = 0;
	}
	vb_xrc_srqs_collect(&store->srqs, slot);
	for (unsigned i = 0; i < vb_xrc_domains(store); i++) {
		struct vb_xrc_domain *domain = &store->domain[i];

		if (!atomic_load(&domain->id) || !domain->refs[slot])
			continue;
		had = true;
		domain->refs[slot] = 0;
		domain_free_if_unused(store, domain);
	}
	return had;
}

bool vb_xrc_holders(const struct vb_xrc_store *store, bool holders[VB_SLOTS])
{
	bool some = false;

	memset(holders, 0, VB_SLOTS * sizeof(*holders));
	for (unsigned i = 0; i < vb_xrc_domains(store); i++) {
		const struct vb_xrc_domain *domain = &store->domain[i];

		for (unsigned slot = 0; atomic_load(&domain->id) && slot < VB_SLOTS; slot++) {
			holders[slot] |= domain->refs[slot] != 0;
			some |= domain->refs[slot] != 0;
		}
	}
	return some;
}
