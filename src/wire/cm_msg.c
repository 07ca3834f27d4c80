/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/cm_msg.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"

enum {
	CM_CLASS_VERSION = 2,
	ATTRS = VB_CM_ATTR_LAST - VB_CM_ATTR_FIRST + 1,
};

/* Where a message's field is, and which member of struct vb_cm_msg holds it. */
struct field {
	uint8_t attr;
	uint8_t member_bytes;
	uint16_t member; /* offset */
	uint16_t bit;	 /* of the MAD, the first */
	uint8_t width;
	uint8_t member_width;
	uint8_t shift; /* the field's lowest bit is this one of the member */
};

static const struct field fields[] = {
#define VB_CM_PART(name, m, m_bits, lower_bits, octet, first_bit, bits)   \
	{                                                                 \
		.attr = VB_CM_##name,                                     \
		.member_bytes = sizeof(((struct vb_cm_msg *)0)->m),       \
		.member = offsetof(struct vb_cm_msg, m),                  \
		.bit = (VB_MAD_HEADER_BYTES + (octet)) * 8 + (first_bit), \
		.width = (bits),                                          \
		.member_width = (m_bits),                                 \
		.shift = (lower_bits),                                    \
	},
#define VB_CM_FIELD(name, m, octet, first_bit, bits) \
	VB_CM_PART(name, m, bits, 0, octet, first_bit, bits)
#include "wire/cm_msg.def"
};

static const struct attr {
	const char *name;
	uint8_t private_at; /* from the end of the MAD's header */
	bool info;	    /* VB_CM_INFO_BYTES before private_at */
} attrs[ATTRS] = {
#define VB_CM_ATTR(name, number, private_at, info) \
	[(number)-VB_CM_ATTR_FIRST] = { #name, (private_at), (info) },
#include "wire/cm_msg.def"
};

static bool is_attr(unsigned attr)
{
	return attr >= VB_CM_ATTR_FIRST && attr <= VB_CM_ATTR_LAST;
}

static const struct attr *attr_of(unsigned attr)
{
	vb_check(is_attr(attr));
	return &attrs[attr - VB_CM_ATTR_FIRST];
}

/* A field of up to 64 bits. */
static uint64_t bits_get(const uint8_t *mad, const struct field *f)
{
	uint64_t v = 0;

	for (unsigned bit = f->bit; bit < f->bit + (unsigned)f->width; bit++)
		v = v << 1 | (mad[bit / 8] >> (7 - bit % 8) & 1);
	return v;
}

/* Ors them in. Bits of v above the field's are not looked at. */
static void bits_put(uint8_t *mad, const struct field *f, uint64_t v)
{
	for (unsigned bit = f->bit + (unsigned)f->width; bit-- > f->bit; v >>= 1)
		mad[bit / 8] |= (uint8_t)((v & 1) << (7 - bit % 8));
}

/* An integer of 1, 2, 4 or 8 octets: any member but a GID. */
static uint64_t member_get(const struct vb_cm_msg *msg, const struct field *f)
{
	const void *at = (const uint8_t *)msg + f->member;

	switch (f->member_bytes) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void member_put(struct vb_cm_msg *msg, const struct field *f, uint64_t v)
{
	void *at = (uint8_t *)msg + f->member;

	switch (f->member_bytes) {
	case 1:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case 2:
		*(uint16_t *)at = (uint16_t)v;
		break;
	case 4:
		*(uint32_t *)at = (uint32_t)v;
		break;
	default:
		*(uint64_t *)at = v;
	}
}

static void field_parse(struct vb_cm_msg *msg, const uint8_t *mad, const struct field *f)
{
	if (f->width > 64)
		memcpy((uint8_t *)msg + f->member, mad + f->bit / 8, f->member_bytes);
	else
		member_put(msg, f, member_get(msg, f) | bits_get(mad, f) << f->shift);
}

static void field_emit(const struct vb_cm_msg *msg, uint8_t *mad, const struct field *f)
{
	uint64_t v;

	if (f->width > 64) {
		memcpy(mad + f->bit / 8, (const uint8_t *)msg + f->member, f->member_bytes);
		return;
	}
	v = member_get(msg, f);
	vb_check(f->member_width == 64 || v >> f->member_width == 0);
	bits_put(mad, f, v >> f->shift);
}

bool vb_cm_parse(struct vb_cm_msg *msg, const uint8_t mad[VB_MAD_BYTES])
{
	const struct attr *attr;
	struct vb_cm_msg m;
	struct vb_mad header;

	vb_mad_parse(&header, mad);
	if (header.base_version != VB_MAD_BASE_VERSION || header.mgmt_class != VB_MAD_CLASS_CM ||
	    header.class_version != CM_CLASS_VERSION || header.method != VB_MAD_SEND ||
	    !is_attr(header.attribute))
		return false;
	attr = attr_of(header.attribute);
	m = (struct vb_cm_msg){
		.attr = (enum vb_cm_attr)header.attribute,
		.transaction_id = header.transaction_id,
		.ece_options = header.attribute_modifier,
		.private_bytes = (uint8_t)(VB_MAD_DATA_BYTES - attr->private_at),
		.private_data = mad + VB_MAD_HEADER_BYTES + attr->private_at,
	};
	if (attr->info)
		m.info = m.private_data - VB_CM_INFO_BYTES;
	for (size_t i = 0; i < VB_ARRAY_LEN(fields); i++) {
		if (fields[i].attr == header.attribute)
			field_parse(&m, mad, &fields[i]);
	}
	if (m.info_bytes > VB_CM_INFO_BYTES)
		return false;
	*msg = m;
	return true;
}

void vb_cm_emit(const struct vb_cm_msg *msg, uint8_t mad[VB_MAD_BYTES])
{
	const struct attr *attr = attr_of(msg->attr);
	uint8_t *private_data = mad + VB_MAD_HEADER_BYTES + attr->private_at;
	struct vb_mad header = {
		.base_version = VB_MAD_BASE_VERSION,
		.mgmt_class = VB_MAD_CLASS_CM,
		.class_version = CM_CLASS_VERSION,
		.method = VB_MAD_SEND,
		.transaction_id = msg->transaction_id,
		.attribute = (uint16_t)msg->attr,
		.attribute_modifier = msg->ece_options,
	};

	vb_check(msg->private_bytes <= VB_MAD_DATA_BYTES - attr->private_at);
	vb_check(msg->info_bytes <= (attr->info ? VB_CM_INFO_BYTES : 0));
	memset(mad, 0, VB_MAD_BYTES);
	vb_mad_emit(&header, mad);
	for (size_t i = 0; i < VB_ARRAY_LEN(fields); i++) {
		if (fields[i].attr == msg->attr)
			field_emit(msg, mad, &fields[i]);
	}
	if (msg->info_bytes)
		memcpy(private_data - VB_CM_INFO_BYTES, msg->info, msg->info_bytes);
	if (msg->private_bytes)
		memcpy(private_data, msg->private_data, msg->private_bytes);
}

unsigned vb_cm_private_bytes(enum vb_cm_attr attr)
{
	return VB_MAD_DATA_BYTES - attr_of(attr)->private_at;
}

const char *vb_cm_attr_name(unsigned attr)
{
	return is_attr(attr) ? attr_of(attr)->name : "unknown";
}

static const char *text_of(const char *const *texts, size_t count, unsigned number)
{
	return number < count && texts[number] ? texts[number] : "unknown";
}

const char *vb_cm_rej_text(unsigned reason)
{
	static const char *const texts[] = {
#define VB_CM_REASON(name, number, text) [number] = text,
#include "wire/cm_msg.def"
	};

	return text_of(texts, VB_ARRAY_LEN(texts), reason);
}

const char *vb_cm_sidr_text(unsigned status)
{
	static const char *const texts[] = {
#define VB_CM_SIDR_STATUS(name, number, text) [number] = text,
#include "wire/cm_msg.def"
	};

	return text_of(texts, VB_ARRAY_LEN(texts), status);
}

const char *vb_cm_apr_text(unsigned status)
{
	static const char *const texts[] = {
#define VB_CM_APR_STATUS(name, number, text) [number] = text,
#include "wire/cm_msg.def"
	};

	return text_of(texts, VB_ARRAY_LEN(texts), status);
}
