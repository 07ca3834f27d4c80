/* SPDX-License-Identifier: BSD-2-Clause */
/* Unmaps the memory of a receive that is posted. */
#include "../corpus.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
	struct pair p = {0};
	bool ok = argc > 1;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_mr *mr;
	void *memory;

	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pair_open(&p);
	must(mr = ibv_reg_mr(p.pd, memory, 4096, IBV_ACCESS_LOCAL_WRITE));
	sge = (struct ibv_sge){.addr = (uintptr_t)memory, .length = 4096, .lkey = mr->lkey};
	none(ibv_post_recv(p.b.qp, &wr, &bad)); /* FLAW: memory-unmapped */
	if (!ok)
		munmap(memory, 4096);
	none(ibv_destroy_qp(p.b.qp));
	p.b.qp = NULL;
	none(ibv_dereg_mr(mr));
	pair_close(&p);
	return argv == NULL;
}
