/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IBVERBS_1.0: the entry points of programs linked before libibverbs 1.1 (2007), whose structs have
 * another layout. Such programs load and find no device: the list is empty, and functions that take
 * an object, which they cannot have, fail.
 */

#include "abi/stub.h"

/* clang-format off */

#define AT_1_0(name) __asm__(".symver compat_" #name ", " #name "@IBVERBS_1.0");

#define INT(name) VB_STUB_INT(compat_##name) AT_1_0(name)
#define MINUS_ONE(name) VB_STUB_MINUS_ONE(compat_##name, EOPNOTSUPP) AT_1_0(name)
#define POINTER(name) VB_STUB_POINTER(compat_##name, EOPNOTSUPP) AT_1_0(name)
#define VOID(name) VB_STUB_VOID(compat_##name) AT_1_0(name)

void *compat_ibv_get_device_list(int *num_devices);
void *compat_ibv_get_device_list(int *num_devices)
{
	if (num_devices)
		*num_devices = 0;
	errno = ENOSYS;
	return NULL;
}
AT_1_0(ibv_get_device_list)

/* A GUID of zero: no such device. 64 bits wide, unlike the other zeros. */
unsigned long compat_ibv_get_device_guid(void);
unsigned long compat_ibv_get_device_guid(void) { return 0; }
AT_1_0(ibv_get_device_guid)

VOID(ibv_ack_async_event)
VOID(ibv_ack_cq_events)
VOID(ibv_free_device_list)

MINUS_ONE(ibv_close_device)
MINUS_ONE(ibv_get_async_event)
MINUS_ONE(ibv_get_cq_event)
MINUS_ONE(ibv_query_gid)
MINUS_ONE(ibv_query_pkey)

POINTER(ibv_alloc_pd)
POINTER(ibv_create_ah)
POINTER(ibv_create_cq)
POINTER(ibv_create_qp)
POINTER(ibv_create_srq)
POINTER(ibv_get_device_name)
POINTER(ibv_open_device)
POINTER(ibv_reg_mr)

INT(ibv_attach_mcast)
INT(ibv_dealloc_pd)
INT(ibv_dereg_mr)
INT(ibv_destroy_ah)
INT(ibv_destroy_cq)
INT(ibv_destroy_qp)
INT(ibv_destroy_srq)
INT(ibv_detach_mcast)
INT(ibv_modify_qp)
INT(ibv_modify_srq)
INT(ibv_query_device)
INT(ibv_query_port)
INT(ibv_query_qp)
INT(ibv_query_srq)
INT(ibv_resize_cq)

/* Not 1.0, but as old: plug-ins registered by it before there was a private version. */
VB_STUB_VOID(compat_ibv_register_driver)
__asm__(".symver compat_ibv_register_driver, ibv_register_driver@IBVERBS_1.1");
