/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs in which something is meant to fail. */

#include "sim.h"

void trouble_plan(struct sim *sim)
{
}

void trouble_op(struct end *end, struct op *op)
{
}

void trouble_recv(struct sim_rq *rq, struct buffer *buffer)
{
}

void trouble_tick(struct sim *sim)
{
}

void trouble_end(struct sim *sim)
{
}
