/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that XRC domains live in is every process's of this uid: one of them writes there what
 * it likes, and makes it shorter if it can. Others get wrong answers, and go on; so does the hub.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "xrc.h"

#define STORE_NAME "/memfd:verbatim-xrc"

enum {
	SEED = 16,
	HEAD_BYTES = 64,   /* who writes there keeps all from XRC, which is not the question */
	RARELY = 256,	   /* one in so many words that are zero is written to */
	ROUNDS = 40,	   /* of a victim's, while all of it is written again and again */
	POLLS = 200,
};

static struct board {
	_Atomic uint32_t passes; /* of the writer over all of the memory */
	_Atomic int error;	 /* with which it could not make it shorter */
} *board;

static uint64_t random_next(void)
{
	static uint64_t state = SEED;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* --- who writes there --- */

static uint64_t *store_find(size_t *words)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t from = 0, to = 0;
	char line[512];

	assert_non_null(maps);
	while (!from && fgets(line, sizeof(line), maps)) {
		if (strstr(line, STORE_NAME))
			assert_int_equal(sscanf(line, "%lx-%lx", &from, &to), 2);
	}
	fclose(maps);
	*words = (to - from) / sizeof(uint64_t);
	return (uint64_t *)(uintptr_t)from;
}

/* The error that it meets with, or 0. */
static int store_shorten(void)
{
	char path[300], target[64];
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *entry;
	int found = 0, rc = 0;

	while ((entry = readdir(fds))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n <= 0 || strncmp(target, STORE_NAME, strlen(STORE_NAME)) != 0)
			continue;
		found++;
		rc = ftruncate(atoi(entry->d_name), 0) ? errno : 0;
	}
	closedir(fds);
	assert_true(found > 0);
	return rc;
}

static void be_writer(void)
{
	uint64_t *store;
	size_t words;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	vt_setup(NULL);
	vt_made(vx_domain(-1, O_CREAT));
	atomic_store(&board->error, store_shorten());
	store = vt_made(store_find(&words));
	for (;;) {
		for (size_t i = HEAD_BYTES / sizeof(*store); i < words; i++) {
			volatile uint64_t *word = &store[i];
			uint64_t value = random_next();

			if (*word || value % RARELY == 0)
				*word = value & 1 ? value >> (value >> 58) : UINT64_MAX;
		}
		atomic_fetch_add(&board->passes, 1);
	}
}

static pid_t writer_start(void)
{
	pid_t pid;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	assert_true(board != MAP_FAILED);
	atomic_store(&board->error, -1);
	pid = fork();
	if (!pid)
		be_writer();
	while (!atomic_load(&board->passes)) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	return pid;
}

/* --- who works there meanwhile --- */

static pid_t hub_pid(void)
{
	const char *at;
	char text[16384];
	int pid = 0;

	vx_hub_says("status", text, sizeof(text));
	at = strstr(text, "pid ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "pid %d", &pid), 1);
	return pid;
}

/* Whatever the answers are: all that is asked for is that there are some. */
static void victim_work(int file_fd)
{
	struct ibv_xrcd *xrcd = vx_domain(file_fd, O_CREAT);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct vx_snd snd;
	struct vx_srq srq;
	struct ibv_qp *rcv;
	struct ibv_wc wc;

	if (!xrcd)
		return;
	vx_srq_open(&srq, xrcd);
	vx_snd_open(&snd, 0);
	rcv = vx_rcv_make(xrcd);
	if (rcv) {
		vx_climb(rcv, snd.qp->qp_num, IBV_QPS_RTR);
		ibv_query_qp(rcv, &attr, ~0, &init);
		vx_climb(snd.qp, rcv->qp_num, IBV_QPS_RTS);
		vx_recv(&srq, 1, 0, 64);
		vx_post(&snd, IBV_WR_SEND, srq.number, 2, 64, NULL);
		for (unsigned i = 0; i < POLLS; i++) {
			ibv_poll_cq(snd.cq, 1, &wc);
			ibv_poll_cq(srq.cq, 1, &wc);
		}
		ibv_destroy_qp(rcv);
	}
	vx_snd_close(&snd);
	vx_srq_close(&srq);
	ibv_close_xrcd(xrcd);
}

vt_test(nobody_dies_of_what_is_written_there)
{
	char path[] = "/tmp/verbatim-garbage-XXXXXX", text[65536];
	int file_fd = mkstemp(path);
	pid_t writer = 0, hub = 0;

	assert_true(file_fd >= 0);
	unlink(path);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t passes;

		if (i % (ROUNDS / 4) == 0)
			writer = writer_start();
		if (!hub)
			hub = hub_pid();
		passes = atomic_load(&board->passes);
		victim_work(i % 2 ? file_fd : -1);
		vx_hub_tells("status", text, sizeof(text));
		vx_hub_tells("log", text, sizeof(text));
		while (atomic_load(&board->passes) == passes)
			usleep(100);
		/* The hub takes back what it had, as far as that can be told. */
		if (i % (ROUNDS / 4) == ROUNDS / 4 - 1) {
			kill(writer, SIGKILL);
			waitpid(writer, NULL, 0);
			munmap(board, sizeof(*board));
		}
	}
	assert_int_equal(hub_pid(), hub);
	close(file_fd);
}

vt_test(nobody_makes_it_shorter)
{
	pid_t writer = writer_start(), hub = hub_pid();

	assert_int_equal(atomic_load(&board->error), EPERM);
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	munmap(board, sizeof(*board));
	victim_work(-1);
	assert_int_equal(hub_pid(), hub);
}
