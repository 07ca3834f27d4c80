/* SPDX-License-Identifier: BSD-2-Clause */
#include "capture/pcap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fd.h"
#include "base/lock.h"
#include "capture/headers.h"
#include "link/around/around.h"
#include "link/gather.h"

/*
 * The file is written without a library: the format is 24 octets and 16 more per packet
 * (pcap-savefile(5)), and Debian's libpcap is itself linked with libibverbs, which this is part of.
 *
 * Each record is a single write to a file opened for appending: a killed process leaves whole
 * records, all that were made.
 */

enum {
	PCAP_MAGIC_NS = 0xa1b23c4d, /* with times in seconds and nanoseconds */
	PCAP_MAJOR = 2,
	PCAP_MINOR = 4,
	PCAP_SNAP_BYTES = 65535,
	PCAP_LINKTYPE_RAW = 101, /* packets begin with their IP header */
};

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snap_bytes, linktype;
};

struct record_header {
	uint32_t seconds, nanoseconds, captured_bytes, bytes;
};

struct pcap_link {
	struct vb_around around;
	vb_identify *identify;
	int fd;
	vb_lock lock; /* guards the following */
	uint8_t packet[PCAP_SNAP_BYTES];
};

static struct pcap_link *pcap_of(struct vb_link *link)
{
	return vb_container_of(link, struct pcap_link, around.link);
}

/* Completes and writes the record; the frame is in place behind its headers. Lock held. */
static void record_write(struct pcap_link *pcap, const struct vb_path *path, uint16_t id,
			 uint32_t frame_bytes)
{
	uint32_t bytes = vb_headers_bytes(path) + frame_bytes;
	struct record_header header;
	struct iovec iov[] = {{&header, sizeof(header)}, {pcap->packet, bytes}};
	struct timespec now;

	vb_headers_put(pcap->packet, path, id, frame_bytes);
	clock_gettime(CLOCK_REALTIME, &now);
	header = (struct record_header){
		.seconds = (uint32_t)now.tv_sec,
		.nanoseconds = (uint32_t)now.tv_nsec,
		.captured_bytes = bytes,
		.bytes = bytes,
	};
	/* A full disk costs records, never traffic. */
	/* System call without libc, whose writev() is a cancellation point: the lock is held. */
	if (syscall(SYS_writev, pcap->fd, iov, VB_ARRAY_LEN(iov)) < 0)
		return;
}

/* Does the frame fit in a record? All of ours do. */
static bool fits(const struct vb_path *path, uint32_t frame_bytes)
{
	return vb_headers_bytes(path) + frame_bytes <= PCAP_SNAP_BYTES;
}

static int pcap_tx(struct vb_link *link, const struct vb_burst *burst)
{
	struct pcap_link *pcap = pcap_of(link);
	struct vb_gather gather = {0};
	int rc = vb_link_tx(pcap->around.inner, burst);

	if (rc || !fits(&burst->path, burst->frame_bytes))
		return rc;
	vb_lock_take(&pcap->lock);
	while (gather.frame < burst->frames) {
		uint8_t *frame = pcap->packet + vb_headers_bytes(&burst->path);
		uint32_t bytes = vb_gather_bytes(&gather, burst);
		uint16_t id = (uint16_t)(burst->first_id + gather.frame);

		if (vb_gather_next(&gather, burst, frame))
			break;
		record_write(pcap, &burst->path, id, bytes);
	}
	vb_lock_drop(&pcap->lock);
	return 0;
}

static void *pcap_claim(struct vb_link *link, const struct vb_path *path, uint16_t *first_id)
{
	return vb_link_claim(pcap_of(link)->around.inner, path, first_id);
}

static void pcap_unclaim(struct vb_link *link, void *claim)
{
	struct vb_link *inner = pcap_of(link)->around.inner;

	inner->ops->unclaim(inner, claim);
}

static unsigned pcap_rx(struct vb_link *link, struct vb_frame *frames, unsigned max)
{
	struct pcap_link *pcap = pcap_of(link);
	unsigned n = vb_link_rx(pcap->around.inner, frames, max);

	for (unsigned i = 0; i < n; i++) {
		const struct vb_frame *frame = &frames[i];
		uint16_t id;

		if (!fits(&frame->path, frame->bytes))
			continue;
		/* A damaged frame keeps the hint. */
		id = frame->id_hint;
		pcap->identify(&frame->path, frame->data, frame->bytes, id, &id);
		vb_lock_take(&pcap->lock);
		memcpy(pcap->packet + vb_headers_bytes(&frame->path), frame->data, frame->bytes);
		record_write(pcap, &frame->path, id, frame->bytes);
		vb_lock_drop(&pcap->lock);
	}
	return n;
}

static unsigned pcap_burst_frames_max(struct vb_link *link)
{
	struct vb_link *inner = pcap_of(link)->around.inner;

	return inner->ops->burst_frames_max(inner);
}

static uint64_t pcap_deadline_ns(struct vb_link *link)
{
	struct vb_link *inner = pcap_of(link)->around.inner;

	return inner->ops->deadline_ns(inner);
}

static void pcap_forget(struct vb_link *link)
{
	vb_around_forget(link);
	close(pcap_of(link)->fd);
}

static void pcap_destroy(struct vb_link *link)
{
	struct pcap_link *pcap = pcap_of(link);

	pcap->around.inner->ops->destroy(pcap->around.inner);
	vb_fd_close(&pcap->fd);
	vb_lock_fini(&pcap->lock);
	free(pcap);
}

static const struct vb_link_ops pcap_ops = {
	VB_AROUND_OPS,
	.tx = pcap_tx,
	.claim = pcap_claim,
	.unclaim = pcap_unclaim,
	.rx = pcap_rx,
	.burst_frames_max = pcap_burst_frames_max,
	.deadline_ns = pcap_deadline_ns,
	.forget = pcap_forget,
	.destroy = pcap_destroy,
};

static int file_create(int *fd, const char *name)
{
	struct file_header header = {
		.magic = PCAP_MAGIC_NS,
		.major = PCAP_MAJOR,
		.minor = PCAP_MINOR,
		.snap_bytes = PCAP_SNAP_BYTES,
		.linktype = PCAP_LINKTYPE_RAW,
	};

	/* Only the owner may read it: it contains the application's data. */
	*fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (*fd < 0)
		return errno;
	if (write(*fd, &header, sizeof(header)) != sizeof(header)) {
		close(*fd);
		return EIO;
	}
	return 0;
}

int vb_link_pcap_create(struct vb_link **link, struct vb_link *inner, const char *file,
			vb_identify *identify)
{
	struct pcap_link *pcap = calloc(1, sizeof(*pcap));
	int rc;

	if (!pcap)
		return ENOMEM;
	rc = file_create(&pcap->fd, file);
	if (rc) {
		free(pcap);
		return rc;
	}
	pcap->around = (struct vb_around){ { &pcap_ops }, inner };
	pcap->identify = identify;
	vb_lock_init(&pcap->lock, VB_RANK_PCAP);
	*link = &pcap->around.link;
	return 0;
}
