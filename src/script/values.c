/* SPDX-License-Identifier: BSD-2-Clause */
#include "script/values.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/check.h"

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

bool vb_script_number(const char *word, size_t bytes, uint64_t *number)
{
	unsigned base = 10;
	uint64_t sum = 0;

	if (bytes > 2 && word[0] == '0' && word[1] == 'x') {
		base = 16;
		word += 2;
		bytes -= 2;
	}
	for (size_t i = 0; i < bytes; i++) {
		unsigned digit = digit_of(word[i]);

		if (digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*number = sum;
	return bytes > 0;
}

bool vb_script_time(const char *word, size_t bytes, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	size_t digits = 0;
	uint64_t count;

	while (digits < bytes && digit_of(word[digits]) < 10)
		digits++;
	if (!vb_script_number(word, digits, &count))
		return false;
	for (unsigned i = 0; i < VB_ARRAY_LEN(units); i++) {
		if (strlen(units[i].name) != bytes - digits ||
		    memcmp(units[i].name, word + digits, bytes - digits) != 0)
			continue;
		if (count > VB_SCRIPT_SECONDS_MAX * 1000000000ull / units[i].ns)
			return false;
		*ns = count * units[i].ns;
		return true;
	}
	return false;
}

bool vb_script_address(const char *word, size_t bytes, uint8_t gid[VB_GID_BYTES])
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
	char text[VB_ADDRESS_BYTES];

	if (bytes >= sizeof(text))
		return false;
	memcpy(text, word, bytes);
	text[bytes] = 0;
	if (inet_pton(AF_INET6, text, gid) == 1)
		return true;
	memcpy(gid, ipv4, sizeof(ipv4));
	return inet_pton(AF_INET, text, gid + sizeof(ipv4)) == 1;
}
