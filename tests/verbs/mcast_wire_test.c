/* SPDX-License-Identifier: BSD-2-Clause */
#include "mcast.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forge.h"

/* Multicast as others see it: on the wire, in other processes, at interfaces that come and go. */

/* --- on the wire --- */

/* Any program's socket that joins the group: what it gets is what a switch would see. */
static int witness_open(unsigned n)
{
	int fd = socket(is_ipv6() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	unsigned interface = if_nametoindex(is_ipv6() ? "vb0" : "lo");
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	struct group_req request = { .gr_interface = interface };
	union ibv_gid gid = group_of(n);
	int level = is_ipv6() ? IPPROTO_IPV6 : IPPROTO_IP;

	memcpy(&in.sin_addr, gid.raw + 12, 4);
	memcpy(&in6.sin6_addr, gid.raw, 16);
	if (is_ipv6())
		memcpy(&request.gr_group, &in6, sizeof(in6));
	else
		memcpy(&request.gr_group, &in, sizeof(in));
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, level, is_ipv6() ? IPV6_RECVHOPLIMIT : IP_RECVTTL, &on,
				    sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&request.gr_group,
			      is_ipv6() ? sizeof(in6) : sizeof(in)), 0);
	assert_int_equal(setsockopt(fd, level, MCAST_JOIN_GROUP, &request, sizeof(request)), 0);
	return fd;
}

static uint32_t be(const uint8_t *at, int octets)
{
	uint32_t value = 0;

	while (octets--)
		value = value << 8 | *at++;
	return value;
}

/* IBA 5.2, Annex A17: the header of a datagram to a group; the hop limit is the AH's. */
mcast_test(the_datagram_is_roce)
{
	union {
		struct cmsghdr header;
		char room[256];
	} control;
	uint8_t octets[256];
	struct sockaddr_storage name;
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr msg = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = &iov,
			      .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int fd = witness_open(7), hops = 0;
	struct vt_end from;

	member_open(&from);
	vt_fill(from.buf, 6, 2);
	cast(&from, 7, 6);
	assert_true(vt_readable(fd, VT_WAIT_MS));
	assert_int_equal(recvmsg(fd, &msg, 0), 12 + 8 + 8 + 4);
	assert_int_equal(octets[0], UD_SEND_ONLY);
	assert_int_equal(octets[1] & 0x30, 0x20); /* two octets of pad */
	assert_int_equal(be(octets + 2, 2), 0xffff);
	assert_int_equal(be(octets + 5, 3), QPN_GROUP);
	assert_int_equal(octets[8], 0); /* no acknowledgement is asked for */
	assert_int_equal(be(octets + 12, 4), VT_QKEY);
	assert_int_equal(be(octets + 17, 3), from.qp->qp_num);
	assert_true(vt_is_filled(octets + 20, 6, 2));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_type == (is_ipv6() ? IPV6_HOPLIMIT : IP_TTL))
			memcpy(&hops, CMSG_DATA(c), sizeof(hops));
	}
	assert_int_equal(hops, HOPS);
	if (is_ipv6())
		assert_memory_equal(&((struct sockaddr_in6 *)&name)->sin6_addr, source.raw, 16);
	else
		assert_memory_equal(&((struct sockaddr_in *)&name)->sin_addr, source.raw + 12, 4);
	close(fd);
	vt_end_close(&from);
}

/* --- events --- */

/* Nobody polls: the message wakes the thread that sleeps for it. */
mcast_test(a_message_wakes_who_waits)
{
	struct ibv_comp_channel *channel = vt_made(ibv_create_comp_channel(vt.ctx));
	struct vt_options opt = { .type = IBV_QPT_UD, .channel = channel };
	struct vt_end from, member;

	vt_end_open(&member, &opt);
	vt_climb(member.qp, &opt, IBV_QPS_RTS, 0);
	member_open(&from);
	for (unsigned i = 0; i < 5; i++) {
		struct ibv_cq *cq;
		void *context;

		assert_int_equal(attach(&member, i), 0);
		listen_at(&member, 0);
		assert_int_equal(ibv_req_notify_cq(member.cq, 0), 0);
		vt_sleep_ms(i ? 20 : 0); /* long enough for all threads to fall asleep */
		cast(&from, i, 8);
		assert_true(vt_readable(channel->fd, VT_WAIT_MS));
		assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		expect_copy(&member, 0, &from, i, 8);
	}
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(detach(&member, i), 0);
	vt_end_close(&from);
	vt_end_close(&member);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

/* --- processes --- */

struct process {
	pid_t pid;
	int to, from;
};

/* This program again, as a member of a group: an octet for each thing that happens. */
static int member_main(unsigned n)
{
	struct pollfd end = { .fd = 0, .events = POLLIN };
	struct vt_end member;
	struct ibv_wc wc;

	setup(NULL);
	member_open(&member);
	for (unsigned i = 0; i < 16; i++)
		listen_at(&member, i);
	if (attach(&member, n) || write(1, "a", 1) != 1)
		return 1;
	while (!poll(&end, 1, 0)) {
		if (!vt_poll_ms(member.cq, &wc, 5))
			continue;
		if (wc.status != IBV_WC_SUCCESS || wc.byte_len != GRH_BYTES + 8 ||
		    write(1, "c", 1) != 1)
			return 1;
	}
	/* It goes without leaving the group, as a program may that crashes. */
	_exit(0);
}

static struct process process_start(unsigned n)
{
	struct process p;
	int to[2], from[2];
	char text[12];

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	snprintf(text, sizeof(text), "%u", n);
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (!p.pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl("/proc/self/exe", "member", text, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	p.to = to[1];
	p.from = from[0];
	return p;
}

static void expect_octet(struct process *p, char wanted)
{
	char got = 0;

	assert_true(vt_readable(p->from, VT_WAIT_MS));
	assert_int_equal(read(p->from, &got, 1), 1);
	assert_int_equal(got, wanted);
}

static void process_end(struct process *p)
{
	int status;

	close(p->to);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	close(p->from);
}

mcast_test(each_process_gets_a_copy)
{
	enum { PROCESSES = 3, GROUP = 11, OTHER = 12 };
	struct process p[PROCESSES], other;
	struct vt_end from, member;

	member_open(&from);
	member_open(&member);
	for (int i = 0; i < PROCESSES; i++)
		p[i] = process_start(GROUP);
	other = process_start(OTHER);
	for (int i = 0; i < PROCESSES; i++)
		expect_octet(&p[i], 'a');
	expect_octet(&other, 'a');
	assert_int_equal(attach(&member, GROUP), 0);
	for (unsigned round = 0; round < 3; round++) {
		listen_at(&member, round);
		cast(&from, GROUP, 8);
		expect_copy(&member, round, &from, GROUP, 8);
		for (int i = 0; i < PROCESSES; i++)
			expect_octet(&p[i], 'c');
	}
	assert_int_equal(detach(&member, GROUP), 0);
	assert_false(vt_readable(other.from, VT_QUIET_MS));
	/* What a process leaves undone, or cannot do any more, the kernel does. */
	assert_int_equal(kill(p[0].pid, SIGKILL), 0);
	process_end(&p[0]);
	cast(&from, GROUP, 8);
	for (int i = 1; i < PROCESSES; i++) {
		expect_octet(&p[i], 'c');
		process_end(&p[i]);
	}
	process_end(&other);
	for (int ms = 0; ms < VT_WAIT_MS && has_joined(is_ipv6() ? "vb0" : "lo", GROUP); ms++)
		vt_sleep_ms(1);
	assert_false(has_joined(is_ipv6() ? "vb0" : "lo", GROUP));
	vt_end_close(&member);
	vt_end_close(&from);
}

/* A child's calls on what it inherited fail, and what its parent has joined goes on. */
mcast_test(a_forked_child_has_no_part_in_it)
{
	struct vt_end from, member;
	int status;
	pid_t pid;

	member_open(&from);
	member_open(&member);
	assert_int_equal(attach(&member, 1), 0);
	listen_at(&member, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(attach(&member, 2) != EIO || detach(&member, 1) != EIO);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	cast(&from, 1, 8);
	expect_copy(&member, 0, &from, 1, 8);
	assert_int_equal(detach(&member, 1), 0);
	vt_end_close(&member);
	vt_end_close(&from);
}

/* --- at the same time --- */

struct caster {
	struct vt_end from;
	struct ibv_ah *ah;
	_Atomic bool stop;
};

static void *cast_on_and_on(void *arg)
{
	struct caster *c = arg;
	struct vt_wr w;
	struct ibv_wc wc;

	message(&w, &c->from, c->ah, 8);
	while (!c->stop) {
		struct ibv_send_wr *bad;

		w.wr.sg_list = &w.sge;
		if (!ibv_post_send(c->from.qp, &w.wr, &bad))
			vt_poll_ms(c->from.cq, &wc, VT_WAIT_MS);
	}
	return NULL;
}

/* Members come and go while messages come, of which those that stay get each. */
mcast_test(members_come_and_go_under_way)
{
	enum { ROUNDS = 300, SLICES = 16 };
	union ibv_gid gid = group_of(21);
	struct caster c = { .stop = false };
	struct vt_end stays, comes;
	struct ibv_wc wc;
	unsigned got = 0;
	pthread_t thread;

	member_open(&c.from);
	member_open(&stays);
	member_open(&comes);
	c.ah = vt_made(try_ah(&gid, source_index, HOPS));
	for (unsigned i = 0; i < SLICES; i++)
		listen_at(&stays, i);
	assert_int_equal(attach(&stays, 21), 0);
	assert_int_equal(pthread_create(&thread, NULL, cast_on_and_on, &c), 0);
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* The last one of a group, and one of several. */
		assert_int_equal(attach(&comes, 22), 0);
		assert_int_equal(attach(&comes, 21), 0);
		if (vt_poll_ms(stays.cq, &wc, VT_WAIT_MS)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			listen_at(&stays, (unsigned)wc.wr_id - 100);
			got++;
		}
		assert_int_equal(detach(&comes, 22), 0);
		assert_int_equal(detach(&comes, 21), 0);
		assert_int_equal(ibv_destroy_qp(comes.qp), 0);
		comes.qp = NULL;
		vt_end_close(&comes);
		member_open(&comes);
	}
	assert_int_equal(got, ROUNDS);
	c.stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(detach(&stays, 21), 0);
	assert_int_equal(ibv_destroy_ah(c.ah), 0);
	vt_end_close(&comes);
	vt_end_close(&stays);
	vt_end_close(&c.from);
}

/* --- without a wire --- */

/* This program again, with VERBATIM_LINK=shm: 0 if all is refused. */
static int wireless_main(void)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_SOURCE_QPN,
	};
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, 239, 79, 0, 1 } };
	struct vt_end end;

	vt_setup(NULL);
	member_open(&end);
	if (ibv_attach_mcast(end.qp, &gid, 0) != ENETUNREACH || ibv_destroy_qp(end.qp))
		return 1;
	if (!is_ipv6() && (try_ah(&gid, vt.gid_index, HOPS) || errno != ENETUNREACH))
		return 2;
	init.pd = vt.pd;
	init.send_cq = init.recv_cq = end.cq;
	if (ibv_create_qp_ex(vt.ctx, &init) || errno != EOPNOTSUPP)
		return 3;
	end.qp = NULL;
	vt_end_close(&end);
	return vt_teardown(NULL);
}

mcast_test(without_a_wire_there_are_no_groups)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		setenv("VERBATIM_LINK", "shm", 1);
		execl("/proc/self/exe", "wireless", "shm", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- interfaces --- */

/* One that comes when the group has its members already; it is left when it goes. */
mcast_test(an_interface_that_comes_is_joined_at)
{
	const char *address = is_ipv6() ? "fd80::1" : "10.80.0.1";
	struct vt_end from, member;
	union ibv_gid gid;
	char command[256];
	int index, own = source_index;

	member_open(&from);
	member_open(&member);
	assert_int_equal(attach(&member, 1), 0);
	snprintf(command, sizeof(command),
		 "ip link add vb2 type veth peer name vb3 && "
		 "ip link set vb3 addrgenmode none up && "
		 "ip addr add %s/24 dev vb2 %s && ip link set vb2 up",
		 address, is_ipv6() ? "nodad" : "");
	assert_int_equal(system(command), 0);
	assert_true(find_gid(address, &gid, &index));
	assert_true(has_joined("vb2", 1));
	listen_at(&member, 0);
	source_index = index;
	await_way_out();
	cast(&from, 1, 8);
	assert_int_equal(vt_expect(member.cq, 100, IBV_WC_SUCCESS).byte_len, GRH_BYTES + 8);
	source_index = own;
	listen_at(&member, 1);
	cast(&from, 1, 8);
	expect_copy(&member, 1, &from, 1, 8);
	assert_int_equal(system("ip link del vb2"), 0);
	listen_at(&member, 2);
	cast(&from, 1, 8);
	expect_copy(&member, 2, &from, 1, 8);
	assert_int_equal(detach(&member, 1), 0);
	vt_end_close(&member);
	vt_end_close(&from);
}

/* Groups that end at the link: those of IPv6 are others at each interface. The copy comes once. */
mcast_test(a_group_of_the_link_is_one_at_each_interface)
{
	static const union ibv_gid gids[] = {
		{ .raw = { [10] = 0xff, [11] = 0xff, 224, 0, 0, 79 } },
		{ .raw = { 0xff, 0x02, [15] = 0x79 } },
	};
	const union ibv_gid gid = gids[is_ipv6()];
	struct vt_end from, member;
	struct ibv_ah *ah;
	struct vt_wr w;

	member_open(&from);
	member_open(&member);
	assert_int_equal(ibv_attach_mcast(member.qp, &gid, 0), 0);
	listen_at(&member, 0);
	listen_at(&member, 1);
	ah = vt_made(try_ah(&gid, source_index, HOPS));
	message(&w, &from, ah, 8);
	vt_post(&from, &w);
	assert_header(member.buf, &source,
		      vt_expect(member.cq, 100, IBV_WC_SUCCESS).byte_len == 48 ? &gid : &source);
	vt_expect_none(member.cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_detach_mcast(member.qp, &gid, 0), 0);
	vt_expect(from.cq, 1, IBV_WC_SUCCESS);
	vt_end_close(&member);
	vt_end_close(&from);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "shm"))
		return wireless_main();
	return argc > 1 ? member_main((unsigned)atoi(argv[1])) : vt_main();
}
