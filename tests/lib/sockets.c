/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a program in C does with sockets: rspreload.sh runs this by TCP and by rsockets, and
 * compares what comes of it.
 *
 *   sockets ADDRESS stdio    as streams of the C library's
 *   sockets ADDRESS jumps    left by siglongjmp(3) amid whatever call
 *   sockets ADDRESS signals  with handlers that let a call begin again, or not
 */

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static int listener;

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	exit(1);
}

static void listen_at(const char *address)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *found;

	must(!getaddrinfo(address, NULL, &hints, &found), "getaddrinfo");
	listener = socket(found->ai_family, SOCK_STREAM, 0);
	must(listener >= 0, "socket");
	must(!bind(listener, found->ai_addr, found->ai_addrlen), "bind");
	must(!listen(listener, 1), "listen");
	freeaddrinfo(found);
}

/* --- streams --- */

static int say(int fd, const char *format, ...)
{
	va_list list;
	int bytes;

	va_start(list, format);
	bytes = vdprintf(fd, format, list);
	va_end(list);
	return bytes;
}

/* Answers each line, in capitals, by the same stream. */
static void *serve(void *arg)
{
	int fd = accept(listener, NULL, NULL);
	FILE *in = fdopen(fd, "r"), *out = fdopen(dup(fd), "w");
	char line[100];

	must(in && out, "fdopen");
	printf("server: fileno is the number: %d\n", fileno(in) == fd);
	while (fgets(line, sizeof(line), in)) {
		for (char *at = line; *at; at++)
			*at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
		fputs(line, out);
		fflush(out);
	}
	printf("server: end %d, error %d\n", feof(in) != 0, ferror(in) != 0);
	fprintf(out, "that was all\n");
	fclose(in);
	fclose(out);
	return arg;
}

static void ask(const struct sockaddr *addr, socklen_t bytes)
{
	int fd = socket(addr->sa_family, SOCK_STREAM, 0);
	char *line = NULL;
	size_t room = 0;
	FILE *both;

	must(!connect(fd, addr, bytes), "connect");
	printf("client: dprintf says %d\n", dprintf(fd, "by %s\n", "dprintf"));
	printf("client: vdprintf says %d\n", say(fd, "by %s\n", "vdprintf"));
	both = fdopen(fd, "r+");
	must(both != NULL, "fdopen");
	fprintf(both, "one %d\n%s", 1, "two");
	fputs(" 2\n", both);
	for (int i = 0; i < 500; i++)
		fprintf(both, "line %d\n", i);
	fflush(both);
	shutdown(fileno(both), SHUT_WR);
	for (int i = 0; getline(&line, &room, both) > 0; i++) {
		if (i < 5 || i > 500)
			printf("client: %s", line);
	}
	free(line);
	printf("client: end %d, error %d\n", feof(both) != 0, ferror(both) != 0);
	printf("client: closed %d", fclose(both));
	printf(", and the number %d\n", close(fd));
}

/* --- jumps --- */

enum { JUMPS = 1000, EVERY_US = 500 };

static sigjmp_buf back;
static volatile sig_atomic_t jumps;

static void jump(int sig)
{
	jumps++;
	siglongjmp(back, sig);
}

static void *drain(void *arg)
{
	static char octets[1 << 16];
	int fd = accept(listener, NULL, NULL);
	ssize_t n;

	do
		n = read(fd, octets, sizeof(octets));
	while (n > 0);
	printf("server: end %zd\n", n);
	close(fd);
	return arg;
}

static void leave(const struct sockaddr *addr, socklen_t bytes)
{
	static char octets[20000];
	struct itimerval every = {{0, EVERY_US}, {0, EVERY_US}}, never = {{0, 0}, {0, 0}};
	int fd = socket(addr->sa_family, SOCK_STREAM, 0);

	must(!connect(fd, addr, bytes), "connect");
	signal(SIGALRM, jump);
	setitimer(ITIMER_REAL, &every, NULL);
	sigsetjmp(back, 1);
	while (jumps < JUMPS)
		must(send(fd, octets, sizeof(octets), 0) > 0, "send");
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	must(send(fd, octets, sizeof(octets), 0) == sizeof(octets), "send");
	printf("client: has left\n");
	close(fd);
}

/* --- signals --- */

static atomic_int ran;

static void count(int sig)
{
	ran++;
}

/* Says a word once a handler has run, and another one some time later. */
static void *answer(void *arg)
{
	int fd = accept(listener, NULL, NULL);

	while (ran < 5)
		usleep(1000);
	must(write(fd, "x", 1) == 1, "write");
	while (ran >= 0)
		usleep(1000);
	close(fd);
	return arg;
}

static void wait_long(const struct sockaddr *addr, socklen_t bytes)
{
	struct itimerval every = {{0, 10 * EVERY_US}, {0, 10 * EVERY_US}}, never = {{0, 0}, {0, 0}};
	struct sigaction ending = {.sa_handler = count};
	int fd = socket(addr->sa_family, SOCK_STREAM, 0);
	char octet;

	must(!connect(fd, addr, bytes), "connect");
	signal(SIGALRM, count);
	setitimer(ITIMER_REAL, &every, NULL);
	printf("client: restarted, read %zd\n", read(fd, &octet, 1));
	sigaction(SIGALRM, &ending, NULL);
	printf("client: ended, read %zd", read(fd, &octet, 1));
	printf(", %s\n", strerror(errno));
	setitimer(ITIMER_REAL, &never, NULL);
	ran = -100;
	printf("client: read %zd\n", read(fd, &octet, 1));
	close(fd);
}

/* --- all --- */

static const struct way {
	const char *name;
	void *(*serve)(void *arg);
	void (*ask)(const struct sockaddr *addr, socklen_t bytes);
} ways[] = {{"stdio", serve, ask}, {"jumps", drain, leave}, {"signals", answer, wait_long}};

int main(int argc, char *argv[])
{
	const struct way *way = ways;
	struct sockaddr_storage addr;
	socklen_t bytes = sizeof(addr);
	pthread_t server;
	sigset_t alarms;

	must(argc == 3, "usage");
	while (strcmp(argv[2], way->name))
		way++;
	setvbuf(stdout, NULL, _IOLBF, 0);
	listen_at(argv[1]);
	must(!getsockname(listener, (struct sockaddr *)&addr, &bytes), "getsockname");
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	must(!pthread_create(&server, NULL, way->serve, NULL), "thread");
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	way->ask((struct sockaddr *)&addr, bytes);
	pthread_join(server, NULL);
	close(listener);
	return 0;
}
