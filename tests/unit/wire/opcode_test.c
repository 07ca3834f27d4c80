/* SPDX-License-Identifier: BSD-2-Clause */
/* The opcode table agrees with itself and with the lengths that IBTA 9.2 and its annexes imply. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "group.h"
#include "wire/opcode.h"

static const uint8_t opcodes[] = {
#define VB_OP(name, opcode, transport, kind, pos, headers, payload) VB_OP_##name,
#include "wire/opcode.def"
#undef VB_OP
};

/* Each opcode stands once in opcode.def, and nothing else is defined. */
TEST(test_rows_are_unique)
{
	size_t defined = 0;

	for (unsigned opcode = 0; opcode < 256; opcode++)
		defined += vb_op_info((uint8_t)opcode) != NULL;
	assert_int_equal(defined, VB_ARRAY_LEN(opcodes));
	for (size_t i = 0; i < VB_ARRAY_LEN(opcodes); i++) {
		const struct vb_op_info *a = vb_op_info(opcodes[i]);

		assert_non_null(a);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(a->name, vb_op_info(opcodes[j])->name);
	}
}

TEST(test_rows_are_consistent)
{
	static const char *const prefixes[] = { "RC_", "UC_", "RD_", "UD_",
						"CNP", "XRC_", "",    "DC_" };

	for (size_t i = 0; i < VB_ARRAY_LEN(opcodes); i++) {
		const struct vb_op_info *a = vb_op_info(opcodes[i]);
		bool is_request = a->kind != VB_K_READ_RESP && a->kind != VB_K_ACK &&
				  a->kind != VB_K_ATOMIC_ACK;

		assert_int_equal(a->transport, opcodes[i] >> 5);
		assert_int_equal(strncmp(a->name, prefixes[a->transport],
					 strlen(prefixes[a->transport])), 0);
		assert_true(a->kind < VB_K_COUNT);
		assert_true(a->pos <= VB_P_ONLY);
		assert_int_equal(a->header_bytes % 4, 0);
		/* Annex A14: the XRCETH is in every XRC request; IBTA 9.2: the DETH in UD. */
		assert_int_equal(!!(a->headers & VB_H_XRCETH),
				 a->transport == VB_XRC && is_request);
		assert_int_equal(!!(a->headers & VB_H_DETH), a->transport == VB_UD);
		/* Ours: who sends, in every packet of DC; the access key in what connects. */
		assert_int_equal(!!(a->headers & VB_H_DCETH), a->transport == VB_DC);
		assert_int_equal(!!(a->headers & VB_H_DCKEY), a->kind == VB_K_CONNECT);
		assert_int_equal(!!(a->headers & VB_H_SRDETH), a->kind == VB_K_CONNECT_SRD);
		/* ImmDt and IETH end a message, and exclude each other. */
		if (a->headers & (VB_H_IMM | VB_H_IETH))
			assert_true(a->pos & VB_P_LAST);
		assert_int_not_equal(a->headers & (VB_H_IMM | VB_H_IETH), VB_H_IMM | VB_H_IETH);
		/* A WRITE names its target once, at the start. */
		if (a->kind == VB_K_WRITE)
			assert_int_equal(!!(a->headers & VB_H_RETH), !!(a->pos & VB_P_FIRST));
		/* Responses are acknowledgements, but for the middle of a READ's. */
		assert_int_equal(!!(a->headers & VB_H_AETH), !is_request && a->pos != VB_P_MIDDLE);
		if (a->pos != VB_P_ONLY)
			assert_true(a->payload);
	}
}

TEST(test_find_inverts_info)
{
	size_t cells = 0;

	for (size_t i = 0; i < VB_ARRAY_LEN(opcodes); i++) {
		const struct vb_op_info *a = vb_op_info(opcodes[i]);

		assert_int_equal(vb_op_find(a->transport, a->kind, a->pos, a->headers), opcodes[i]);
	}
	for (size_t i = 0; i < VB_OP_FIND_SIZE; i++)
		cells += vb_op_complements[i] != 0;
	assert_int_equal(cells, VB_ARRAY_LEN(opcodes));
	assert_int_equal(vb_op_find(VB_RC, VB_K_SEND, VB_P_FIRST, 0), 0x00);
	assert_int_equal(vb_op_find(VB_RC, VB_K_SEND, VB_P_ONLY, VB_H_IETH), 0x17);
	assert_int_equal(vb_op_find(VB_UC, VB_K_WRITE, VB_P_LAST, VB_H_IMM), 0x29);
	assert_int_equal(vb_op_find(VB_UD, VB_K_SEND, VB_P_ONLY, VB_H_IMM), 0x65);
	assert_int_equal(vb_op_find(VB_XRC, VB_K_FETCH_ADD, VB_P_ONLY, 0), 0xb4);
	assert_int_equal(vb_op_find(VB_CNP, VB_K_CNP, VB_P_ONLY, 0), 0x81);
}

TEST(test_header_lengths)
{
	static const struct {
		uint8_t opcode;
		uint8_t header_bytes;
		bool payload;
	} rows[] = {
		{ VB_OP_RC_SEND_MIDDLE, 12, true },
		{ VB_OP_RC_SEND_LAST_IMM, 16, true },
		{ VB_OP_RC_SEND_ONLY_INV, 16, true },
		{ VB_OP_RC_WRITE_FIRST, 28, true },
		{ VB_OP_RC_WRITE_ONLY_IMM, 32, true },
		{ VB_OP_RC_READ_REQ, 28, false },
		{ VB_OP_RC_READ_RESP_FIRST, 16, true },
		{ VB_OP_RC_READ_RESP_MIDDLE, 12, true },
		{ VB_OP_RC_ACK, 16, false },
		{ VB_OP_RC_ATOMIC_ACK, 24, false },
		{ VB_OP_RC_CMP_SWP, 40, false },
		{ VB_OP_RC_FLUSH, 32, false },
		{ VB_OP_RC_ATOMIC_WRITE, 28, true },
		{ VB_OP_UD_SEND_ONLY, 20, true },
		{ VB_OP_UD_SEND_ONLY_IMM, 24, true },
		{ VB_OP_CNP, 28, false },
		{ VB_OP_XRC_SEND_ONLY, 16, true },
		{ VB_OP_XRC_WRITE_ONLY_IMM, 36, true },
		{ VB_OP_XRC_FETCH_ADD, 44, false },
		{ VB_OP_XRC_ACK, 16, false },
		{ VB_OP_DC_SEND_MIDDLE, 28, true },
		{ VB_OP_DC_WRITE_ONLY_IMM, 48, true },
		{ VB_OP_DC_ACK, 32, false },
		{ VB_OP_DC_FETCH_ADD, 56, false },
		{ VB_OP_DC_CONNECT, 36, false },
		{ VB_OP_DC_DISCONNECT, 28, false },
		{ VB_OP_DC_CONNECT_SRD, 52, false },
	};

	for (size_t i = 0; i < VB_ARRAY_LEN(rows); i++) {
		assert_int_equal(vb_op_info(rows[i].opcode)->header_bytes, rows[i].header_bytes);
		assert_int_equal(vb_op_info(rows[i].opcode)->payload, rows[i].payload);
	}
}

/* RESYNC belongs to RD; UC has no reads; UD has no multi-packet messages. */
TEST(test_reserved_opcodes)
{
	static const uint8_t reserved[] = {
		0x15, 0x18, 0x1b, 0x1e, 0x1f, 0x2c, 0x33, 0x37, 0x40, 0x5f,
		0x60, 0x63, 0x66, 0x6a, 0x80, 0x82, 0xb5, 0xb8, 0xc0, 0xf5, 0xfb, 0xff,
	};

	for (size_t i = 0; i < sizeof(reserved); i++)
		assert_null(vb_op_info(reserved[i]));
}

/* Asking for what does not exist is our own bug and stops the program, in every build. */
TEST(test_find_refuses_nonsense)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		/* cmocka catches this signal, and would go on with the next test in the child. */
		signal(SIGILL, SIG_DFL);
		vb_op_find(VB_UC, VB_K_READ_REQ, VB_P_ONLY, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}
