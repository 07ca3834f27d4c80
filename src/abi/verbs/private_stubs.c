/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IBVERBS_PRIVATE: what rdma-core's libibverbs offers to its own kernel-driver plug-ins. There is no
 * kernel driver here, so each of them fails; they exist so that a plug-in library that a program
 * links directly (libmlx4.so.1, libhns.so.1) can be loaded.
 *
 * The number in the version differs from one distribution's rdma-core to the next, and the loader
 * refuses a program whose number is missing. So each name is exported under all of them; 34, which
 * Debian 12 has, is the default one and comes from libibverbs.map.
 */

#include "abi/stub.h"

#include <stdbool.h>

/* clang-format off */

#define AT(name, number) \
	__asm__(".symver " #name ", " #name "@IBVERBS_PRIVATE_" #number);

/* The same numbers stand in libibverbs.map. */
#define EACH_NUMBER(X, name) \
	X(name, 22) X(name, 25) X(name, 26) X(name, 33) X(name, 35) X(name, 50) \
	X(name, 54) X(name, 56) X(name, 57) X(name, 58) X(name, 59) X(name, 60)

#define INT(name) VB_STUB_INT(name) EACH_NUMBER(AT, name)
#define NEGATIVE(name) VB_STUB_NEGATIVE(name) EACH_NUMBER(AT, name)
#define MINUS_ONE(name) VB_STUB_MINUS_ONE(name, EOPNOTSUPP) EACH_NUMBER(AT, name)
#define POINTER(name) VB_STUB_POINTER(name, EOPNOTSUPP) EACH_NUMBER(AT, name)
#define ZERO(name) VB_STUB_ZERO(name) EACH_NUMBER(AT, name)
#define VOID(name) VB_STUB_VOID(name) EACH_NUMBER(AT, name)

/* A plug-in registers itself from its constructor: it must return, and is never heard of again. */
#define REGISTER(name, number) \
	VB_STUB_VOID(name##number) \
	__asm__(".symver " #name #number ", " #name #number "@IBVERBS_PRIVATE_" #number);
VB_STUB_VOID(verbs_register_driver_34)
EACH_NUMBER(REGISTER, verbs_register_driver_)

/* Whether a plug-in may forget objects whose device is gone. Ours never goes. */
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;
EACH_NUMBER(AT, verbs_allow_disassociate_destroy)

/* The one that programs call: ibv_devinfo, pyverbs. The real one is where the GID table is. */
int ibv_query_gid_type(void *context, unsigned char port, unsigned int index, void *type)
	__attribute__((weak));
#define GID_TYPE(name, number) \
	int name##number(void *context, unsigned char port, unsigned int index, void *type); \
	int name##number(void *context, unsigned char port, unsigned int index, void *type) \
	{ return ibv_query_gid_type(context, port, index, type); } \
	__asm__(".symver " #name #number ", ibv_query_gid_type@IBVERBS_PRIVATE_" #number);
EACH_NUMBER(GID_TYPE, query_gid_type_)

VOID(__verbs_log)
VOID(verbs_init_cq)
VOID(verbs_set_ops)
VOID(verbs_uninit_context)
POINTER(_verbs_init_and_alloc_context)
POINTER(verbs_open_device)
/* Counts the attributes of a command that nobody can send. */
ZERO(__ioctl_final_num_attrs)
MINUS_ONE(ibv_read_ibdev_sysfs_file)
/* Returns how many completions it found. */
NEGATIVE(ibv_cmd_poll_cq)

INT(execute_ioctl)
INT(ibv_cmd_advise_mr)
INT(ibv_cmd_alloc_dm)
INT(ibv_cmd_alloc_mw)
INT(ibv_cmd_alloc_pd)
INT(ibv_cmd_attach_mcast)
INT(ibv_cmd_close_xrcd)
INT(ibv_cmd_create_ah)
INT(ibv_cmd_create_counters)
INT(ibv_cmd_create_cq)
INT(ibv_cmd_create_cq_ex)
INT(ibv_cmd_create_flow)
INT(ibv_cmd_create_flow_action_esp)
INT(ibv_cmd_create_qp)
INT(ibv_cmd_create_qp_ex)
INT(ibv_cmd_create_qp_ex2)
INT(ibv_cmd_create_rwq_ind_table)
INT(ibv_cmd_create_srq)
INT(ibv_cmd_create_srq_ex)
INT(ibv_cmd_create_wq)
INT(ibv_cmd_dealloc_mw)
INT(ibv_cmd_dealloc_pd)
INT(ibv_cmd_dereg_mr)
INT(ibv_cmd_destroy_ah)
INT(ibv_cmd_destroy_counters)
INT(ibv_cmd_destroy_cq)
INT(ibv_cmd_destroy_flow)
INT(ibv_cmd_destroy_flow_action)
INT(ibv_cmd_destroy_qp)
INT(ibv_cmd_destroy_rwq_ind_table)
INT(ibv_cmd_destroy_srq)
INT(ibv_cmd_destroy_wq)
INT(ibv_cmd_detach_mcast)
INT(ibv_cmd_free_dm)
INT(ibv_cmd_get_context)
INT(ibv_cmd_modify_cq)
INT(ibv_cmd_modify_flow_action_esp)
INT(ibv_cmd_modify_qp)
INT(ibv_cmd_modify_qp_ex)
INT(ibv_cmd_modify_srq)
INT(ibv_cmd_modify_wq)
INT(ibv_cmd_open_qp)
INT(ibv_cmd_open_xrcd)
INT(ibv_cmd_post_recv)
INT(ibv_cmd_post_send)
INT(ibv_cmd_post_srq_recv)
INT(ibv_cmd_query_context)
INT(ibv_cmd_query_device_any)
INT(ibv_cmd_query_mr)
INT(ibv_cmd_query_port)
INT(ibv_cmd_query_qp)
INT(ibv_cmd_query_srq)
INT(ibv_cmd_read_counters)
INT(ibv_cmd_reg_dm_mr)
INT(ibv_cmd_reg_dmabuf_mr)
INT(ibv_cmd_reg_mr)
INT(ibv_cmd_req_notify_cq)
INT(ibv_cmd_rereg_mr)
INT(ibv_cmd_resize_cq)
