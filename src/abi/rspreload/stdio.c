/* SPDX-License-Identifier: BSD-2-Clause */

/* Streams of the C library's, upon a number. What these call within the library is not ours. */

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/rspreload/calls.h"
#include "abi/rspreload/front.h"

/* What the C library's headers declare only for programs that are compiled with its checks. */
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list list);

static int number_of(void *cookie)
{
	return (int)(intptr_t)cookie;
}

static ssize_t stream_read(void *cookie, char *buf, size_t bytes)
{
	return read(number_of(cookie), buf, bytes);
}

/* All of it: less is an error to the stream. */
static ssize_t stream_write(void *cookie, const char *buf, size_t bytes)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes) {
		n = write(number_of(cookie), buf + done, bytes - done);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int stream_close(void *cookie)
{
	return close(number_of(cookie));
}

FILE *fdopen(int fd, const char *mode)
{
	const cookie_io_functions_t calls = {
		.read = stream_read, .write = stream_write, .close = stream_close,
	};
	FILE *stream;

	if (!vb_front_of(fd))
		return vb_real()->fdopen(fd, mode);
	stream = fopencookie((void *)(intptr_t)fd, mode, calls);
	/* For fileno(3). All else goes by the functions. */
	if (stream)
		stream->_fileno = fd;
	return stream;
}

int vdprintf(int fd, const char *format, va_list list)
{
	char *text;
	int bytes;

	if (!vb_front_of(fd))
		return vb_real()->vdprintf(fd, format, list);
	bytes = vasprintf(&text, format, list);
	if (bytes < 0)
		return -1;
	if (stream_write((void *)(intptr_t)fd, text, (size_t)bytes) < bytes)
		bytes = -1;
	free(text);
	return bytes;
}

int dprintf(int fd, const char *format, ...)
{
	va_list list;
	int bytes;

	va_start(list, format);
	bytes = vdprintf(fd, format, list);
	va_end(list);
	return bytes;
}

int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list list;
	int bytes;

	va_start(list, format);
	bytes = __vdprintf_chk(fd, flag, format, list);
	va_end(list);
	return bytes;
}

int __vdprintf_chk(int fd, int flag, const char *format, va_list list)
{
	if (!vb_front_of(fd))
		return vb_real()->__vdprintf_chk(fd, flag, format, list);
	return vdprintf(fd, format, list);
}
