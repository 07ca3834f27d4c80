/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VB_CLI_DOCTOR_LIBRARY_H
#define VB_CLI_DOCTOR_LIBRARY_H

/*
 * Our own libibverbs.so.1, which this command is not linked with: as any program uses it, so that
 * what is shown is what programs get.
 */

#include <infiniband/verbs.h>
#include <stdint.h>

struct vb_cli_devices_calls {
	struct ibv_device **(*get_list)(int *);
	void (*free_list)(struct ibv_device **);
	const char *(*get_name)(struct ibv_device *);
	uint64_t (*get_guid)(struct ibv_device *);
	struct ibv_context *(*open)(struct ibv_device *);
	int (*close)(struct ibv_context *);
};

struct vb_cli_port_calls {
	int (*query)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
	int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
	int (*query_gid_type)(struct ibv_context *, uint8_t, unsigned, unsigned *);
	const char *(*state_str)(enum ibv_port_state);
	void (*mac)(uint64_t node_guid_be, uint8_t mac[6]);
};

struct vb_cli_object_calls {
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *,
				    int);
	struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
	int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
};

struct vb_cli_library {
	struct vb_cli_devices_calls device;
	struct vb_cli_port_calls port;
	struct vb_cli_object_calls object;
};

/* Returns 0; or ENOENT, after reporting why. */
int vb_cli_library_open(struct vb_cli_library *library);

#endif
