/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IBVERBS_PRIVATE: what rdma-core's libibverbs offers to its own kernel-driver plug-ins. There is
 * no kernel driver here, so all of them fail. They exist so that a plug-in library that a program
 * links directly (libmlx4.so.1, libhns.so.1) can be loaded.
 *
 * The number in the version differs between distributions' rdma-core, and the loader refuses a
 * program if its number is missing. So each name is exported under all of them: one function per
 * kind of failure, with many versioned names. 34 is Debian 12's number.
 */

#include "abi/stub.h"

#include <stdbool.h>

/* clang-format off */

VB_STUB_INT(private_int)
VB_STUB_NEGATIVE(private_negative)
VB_STUB_MINUS_ONE(private_minus_one, EOPNOTSUPP)
VB_STUB_POINTER(private_pointer, EOPNOTSUPP)
VB_STUB_ZERO(private_zero)
VB_STUB_VOID(private_void)

/* May a plug-in forget objects of a removed device? Ours is never removed. */
extern bool private_false;
bool private_false;

#define EXPORT(symbol, name, node) __asm__(".symver " #symbol ", " #name node);

/* libibverbs.map has the same numbers. */
#define OTHER(X, symbol, name) \
	X(symbol, name, 22) X(symbol, name, 25) X(symbol, name, 26) X(symbol, name, 33) \
	X(symbol, name, 35) X(symbol, name, 50) X(symbol, name, 54) X(symbol, name, 56) \
	X(symbol, name, 57) X(symbol, name, 58) X(symbol, name, 59) X(symbol, name, 60) \
	X(symbol, name, 61) X(symbol, name, 62) X(symbol, name, 63) X(symbol, name, 64) \
	X(symbol, name, 65)
#define EXPORT_OTHER(symbol, name, number) EXPORT(symbol, name, "@IBVERBS_PRIVATE_" #number)

#define PRIVATE(symbol, name) \
	EXPORT(symbol, name, "@@IBVERBS_PRIVATE_34") OTHER(EXPORT_OTHER, symbol, name)

/* A plug-in registers from its constructor: the call must return, and has no effect. */
#define REGISTER(symbol, name, number) EXPORT(symbol, name##number, "@IBVERBS_PRIVATE_" #number)
EXPORT(private_void, verbs_register_driver_34, "@@IBVERBS_PRIVATE_34")
OTHER(REGISTER, private_void, verbs_register_driver_)

/* Programs call this one (ibv_devinfo, pyverbs). The real one, @@34, is beside the GID table. */
int ibv_query_gid_type(void *context, unsigned char port, unsigned int index, void *type);
int private_query_gid_type(void *context, unsigned char port, unsigned int index, void *type);
int private_query_gid_type(void *context, unsigned char port, unsigned int index, void *type)
{
	return ibv_query_gid_type(context, port, index, type);
}
OTHER(EXPORT_OTHER, private_query_gid_type, ibv_query_gid_type)

/* So is this one: it is in <infiniband/verbs.h>, but among the private symbols. */
const char *ibv_wr_opcode_str(int opcode);
const char *private_wr_opcode_str(int opcode);
const char *private_wr_opcode_str(int opcode)
{
	return ibv_wr_opcode_str(opcode);
}
OTHER(EXPORT_OTHER, private_wr_opcode_str, ibv_wr_opcode_str)

PRIVATE(private_false, verbs_allow_disassociate_destroy)
PRIVATE(private_void, __verbs_log)
PRIVATE(private_void, verbs_init_cq)
PRIVATE(private_void, verbs_set_ops)
PRIVATE(private_void, verbs_uninit_context)
PRIVATE(private_void, ibv_dmabuf_heap_destroy)
PRIVATE(private_void, ibv_dmabuf_heap_free)
PRIVATE(private_pointer, _verbs_init_and_alloc_context)
PRIVATE(private_pointer, verbs_open_device)
PRIVATE(private_pointer, ibv_dmabuf_heap_alloc)
PRIVATE(private_pointer, ibv_dmabuf_heap_cc_shared_init)
PRIVATE(private_minus_one, ibv_read_ibdev_sysfs_file)
/* Counts the attributes of a command, which cannot be sent. */
PRIVATE(private_zero, __ioctl_final_num_attrs)
/* Returns how many completions it found. */
PRIVATE(private_negative, ibv_cmd_poll_cq)

PRIVATE(private_int, execute_ioctl)
PRIVATE(private_int, ibv_cmd_advise_mr)
PRIVATE(private_int, ibv_cmd_alloc_dm)
PRIVATE(private_int, ibv_cmd_alloc_dmah)
PRIVATE(private_int, ibv_cmd_alloc_mw)
PRIVATE(private_int, ibv_cmd_alloc_pd)
PRIVATE(private_int, ibv_cmd_attach_mcast)
PRIVATE(private_int, ibv_cmd_close_xrcd)
PRIVATE(private_int, ibv_cmd_create_ah)
PRIVATE(private_int, ibv_cmd_create_comp_cntr)
PRIVATE(private_int, ibv_cmd_create_counters)
PRIVATE(private_int, ibv_cmd_create_cq)
PRIVATE(private_int, ibv_cmd_create_cq_ex)
PRIVATE(private_int, ibv_cmd_create_cq_ex2)
PRIVATE(private_int, ibv_cmd_create_flow)
PRIVATE(private_int, ibv_cmd_create_flow_action_esp)
PRIVATE(private_int, ibv_cmd_create_qp)
PRIVATE(private_int, ibv_cmd_create_qp_ex)
PRIVATE(private_int, ibv_cmd_create_qp_ex2)
PRIVATE(private_int, ibv_cmd_create_rwq_ind_table)
PRIVATE(private_int, ibv_cmd_create_srq)
PRIVATE(private_int, ibv_cmd_create_srq_ex)
PRIVATE(private_int, ibv_cmd_create_wq)
PRIVATE(private_int, ibv_cmd_dealloc_mw)
PRIVATE(private_int, ibv_cmd_dealloc_pd)
PRIVATE(private_int, ibv_cmd_dereg_mr)
PRIVATE(private_int, ibv_cmd_destroy_ah)
PRIVATE(private_int, ibv_cmd_destroy_comp_cntr)
PRIVATE(private_int, ibv_cmd_destroy_counters)
PRIVATE(private_int, ibv_cmd_destroy_cq)
PRIVATE(private_int, ibv_cmd_destroy_flow)
PRIVATE(private_int, ibv_cmd_destroy_flow_action)
PRIVATE(private_int, ibv_cmd_destroy_qp)
PRIVATE(private_int, ibv_cmd_destroy_rwq_ind_table)
PRIVATE(private_int, ibv_cmd_destroy_srq)
PRIVATE(private_int, ibv_cmd_destroy_wq)
PRIVATE(private_int, ibv_cmd_detach_mcast)
PRIVATE(private_int, ibv_cmd_export_dmabuf_fd)
PRIVATE(private_int, ibv_cmd_free_dm)
PRIVATE(private_int, ibv_cmd_free_dmah)
PRIVATE(private_int, ibv_cmd_get_context)
PRIVATE(private_int, ibv_cmd_inc_comp_cntr)
PRIVATE(private_int, ibv_cmd_inc_err_comp_cntr)
PRIVATE(private_int, ibv_cmd_modify_cq)
PRIVATE(private_int, ibv_cmd_modify_flow_action_esp)
PRIVATE(private_int, ibv_cmd_modify_qp)
PRIVATE(private_int, ibv_cmd_modify_qp_ex)
PRIVATE(private_int, ibv_cmd_modify_srq)
PRIVATE(private_int, ibv_cmd_modify_wq)
PRIVATE(private_int, ibv_cmd_open_qp)
PRIVATE(private_int, ibv_cmd_open_xrcd)
PRIVATE(private_int, ibv_cmd_post_recv)
PRIVATE(private_int, ibv_cmd_post_send)
PRIVATE(private_int, ibv_cmd_post_srq_recv)
PRIVATE(private_int, ibv_cmd_qp_attach_comp_cntr)
PRIVATE(private_int, ibv_cmd_query_comp_cntr_caps)
PRIVATE(private_int, ibv_cmd_query_context)
PRIVATE(private_int, ibv_cmd_query_device_any)
PRIVATE(private_int, ibv_cmd_query_mr)
PRIVATE(private_int, ibv_cmd_query_port)
PRIVATE(private_int, ibv_cmd_query_port_speed)
PRIVATE(private_int, ibv_cmd_query_qp)
PRIVATE(private_int, ibv_cmd_query_srq)
PRIVATE(private_int, ibv_cmd_read_comp_cntr)
PRIVATE(private_int, ibv_cmd_read_counters)
PRIVATE(private_int, ibv_cmd_read_err_comp_cntr)
PRIVATE(private_int, ibv_cmd_reg_dm_mr)
PRIVATE(private_int, ibv_cmd_reg_dmabuf_mr)
PRIVATE(private_int, ibv_cmd_reg_mr)
PRIVATE(private_int, ibv_cmd_reg_mr_ex)
PRIVATE(private_int, ibv_cmd_req_notify_cq)
PRIVATE(private_int, ibv_cmd_rereg_mr)
PRIVATE(private_int, ibv_cmd_resize_cq)
PRIVATE(private_int, ibv_cmd_set_comp_cntr)
PRIVATE(private_int, ibv_cmd_set_err_comp_cntr)
