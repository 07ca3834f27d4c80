/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_WIRE_AETH_H
#define VB_WIRE_AETH_H

/* The AETH's syndrome (IBTA 9.7.5): below a reserved bit, two bits of class and five of value. */

#include <stdint.h>

enum vb_aeth {
	VB_AETH_ACK = 0,      /* value: credit code */
	VB_AETH_RNR = 1,      /* value: timer code */
	VB_AETH_RESERVED = 2,
	VB_AETH_NAK = 3,      /* value: enum vb_nak, above VB_NAK_RD: reserved */
};

enum vb_nak {
	VB_NAK_PSN = 0,         /* PSN sequence error */
	VB_NAK_INVALID_REQ = 1, /* invalid request */
	VB_NAK_ACCESS = 2,      /* remote access error */
	VB_NAK_OP = 3,          /* remote operational error */
	VB_NAK_RD = 4,          /* invalid RD request */
};

#define VB_AETH_VALUE_MASK 31

static inline uint8_t vb_aeth_ack(unsigned credits5)
{
	return (uint8_t)(VB_AETH_ACK << 5 | (credits5 & VB_AETH_VALUE_MASK));
}

static inline uint8_t vb_aeth_rnr(unsigned timer5)
{
	return (uint8_t)(VB_AETH_RNR << 5 | (timer5 & VB_AETH_VALUE_MASK));
}

static inline uint8_t vb_aeth_nak(enum vb_nak code)
{
	return (uint8_t)(VB_AETH_NAK << 5 | ((unsigned)code & VB_AETH_VALUE_MASK));
}

static inline enum vb_aeth vb_aeth_class(uint8_t syndrome)
{
	return (enum vb_aeth)(syndrome >> 5 & 3);
}

static inline unsigned vb_aeth_value(uint8_t syndrome)
{
	return syndrome & VB_AETH_VALUE_MASK;
}

/* End-to-end credits (IBTA 9.7.7.2). */

#define VB_CREDIT_CODE_UNLIMITED 31 /* this responder does not use credits */
#define VB_CREDIT_UNLIMITED UINT32_MAX

/* The number of receive WRs for a credit code: 0 ... 32768; VB_CREDIT_UNLIMITED for code 31. */
uint32_t vb_credit_decode(unsigned code5);

/* The largest code for at most `count` receive WRs; 31 only for VB_CREDIT_UNLIMITED itself. */
unsigned vb_credit_encode(uint32_t count);

/* The delay of an RNR NAK timer code in ns: 10 us to 655.36 ms (IBTA 9.7.5.2.8). */
uint64_t vb_rnr_timer_ns(unsigned code5);

#endif
