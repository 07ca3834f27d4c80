/* SPDX-License-Identifier: BSD-2-Clause */
/* Work queues: creation, states, what is received and what is not, tables. */
#include "wq_fixture.h"

/* Work queues are for what comes by the Ethernet segment, and there is one. */
static struct vb_cq *cq;
static struct vb_mr *mr;

static int begin_wq(void **state)
{
	begin(state);
	side_use_segment(&fix);
	cq = make_cq(64, NULL);
	mr = make_mr();
	return 0;
}

static int end_wq(void **state)
{
	assert_int_equal(vb_mr_dereg(mr), 0);
	drop_cq(cq);
	return end(state);
}

#define WITH_SEGMENT(name) TEST_BETWEEN(name, begin_wq, end_wq)

WITH_SEGMENT(test_creation)
{
	struct ibv_wq_init_attr good = wq_init(cq), attr = good;
	struct ibv_context other = {.device = NULL};
	struct vb_rwq *wq, *second;

	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), 0);
	assert_int_equal(attr.max_wr, good.max_wr);
	assert_int_equal(attr.max_sge, good.max_sge);
	assert_int_equal(wq->ibv.state, IBV_WQS_RESET);
	assert_ptr_equal(wq->ibv.pd, good.pd);
	assert_ptr_equal(wq->ibv.cq, good.cq);
	assert_int_equal(wq->ibv.wq_type, IBV_WQT_RQ);
	assert_true(wq->ibv.wq_num > 0xffffff); /* which no QP has */
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &second), 0);
	assert_int_not_equal(wq->ibv.wq_num, second->ibv.wq_num);
	drop_wq(wq);
	drop_wq(second);

	/* Flags count only if the mask says that they are there. */
	attr.create_flags = IBV_WQ_FLAGS_RESERVED;
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), 0);
	drop_wq(wq);
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), EOPNOTSUPP);
	attr = good;
	attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), EOPNOTSUPP);
#define REFUSED(change)                                                       \
	do {                                                                  \
		attr = good;                                                  \
		change;                                                       \
		assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), EINVAL); \
	} while (0)
	REFUSED(attr.wq_type = (enum ibv_wq_type)1);
	REFUSED(attr.max_wr = 0);
	REFUSED(attr.max_wr = VB_QP_WR_MAX + 1);
	REFUSED(attr.max_sge = VB_SGE_MAX + 1);
	REFUSED(attr.pd = NULL);
	REFUSED(attr.cq = NULL);
	REFUSED(attr.pd = &((struct vb_pd){.ibv.context = &other}).ibv);
	REFUSED(attr.cq = &((struct vb_cq){.ibv.cq.context = &other}).ibv.cq);
	attr = good;
	atomic_store(&fix.nic->special.rwqs.count, VB_RWQS_MAX);
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), ENOMEM);
	atomic_store(&fix.nic->special.rwqs.count, 0);
	fix.nic->host.segment = NULL;
	assert_int_equal(vb_rwq_create(fix.ctx, &attr, &wq), EOPNOTSUPP);
}

WITH_SEGMENT(test_what_it_needs_stays)
{
	struct vb_rwq *wq = make_wq(cq, 0);

	assert_int_equal(vb_cq_destroy(cq), EBUSY);
	assert_int_equal(vb_pd_destroy(fix.pd), EBUSY);
	drop_wq(wq);
}

/* Every pair of states; what is refused changes nothing. */
WITH_SEGMENT(test_transitions)
{
	static const bool legal[3][3] = {
		[IBV_WQS_RESET] = {true, true, false},
		[IBV_WQS_RDY] = {true, true, true},
		[IBV_WQS_ERR] = {true, false, true},
	};

	for (unsigned from = 0; from < 3; from++) {
		for (unsigned to = 0; to < 5; to++) {
			struct vb_rwq *wq = make_wq(cq, 0);
			bool good = to < 3 && legal[from][to];

			if (from != IBV_WQS_RESET)
				assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
			if (from == IBV_WQS_ERR)
				assert_int_equal(wq_state_set(wq, IBV_WQS_ERR), 0);
			assert_int_equal(wq_state_set(wq, (enum ibv_wq_state)to),
					 good ? 0 : EINVAL);
			assert_int_equal(wq->ibv.state, good ? to : from);
			drop_wq(wq);
		}
	}
}

WITH_SEGMENT(test_modify)
{
	struct vb_rwq *wq = make_wq(cq, IBV_WQ_FLAGS_SCATTER_FCS);
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
				   .wq_state = IBV_WQS_RDY,
				   .curr_wq_state = IBV_WQS_ERR};

	assert_int_equal(vb_rwq_modify(wq, &attr), EINVAL);
	attr.curr_wq_state = IBV_WQS_RESET;
	assert_int_equal(vb_rwq_modify(wq, &attr), 0);
	assert_int_equal(attr.curr_wq_state, IBV_WQS_RDY); /* what it is now comes out */
	attr.attr_mask = IBV_WQ_ATTR_RESERVED;
	assert_int_equal(vb_rwq_modify(wq, &attr), EINVAL);

	attr = (struct ibv_wq_attr){.attr_mask = IBV_WQ_ATTR_FLAGS,
				    .flags = IBV_WQ_FLAGS_CVLAN_STRIPPING,
				    .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING};
	assert_int_equal(vb_rwq_modify(wq, &attr), 0);
	assert_int_equal(attr.flags, IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS);
	attr.flags_mask = 0;
	assert_int_equal(vb_rwq_modify(wq, &attr), 0);
	assert_int_equal(attr.flags, IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS);
	for (uint32_t bit = 1; bit <= 4; bit++) {
		attr.flags_mask = 1u << bit;
		assert_int_equal(vb_rwq_modify(wq, &attr), EOPNOTSUPP);
	}
	drop_wq(wq);
}

WITH_SEGMENT(test_posting)
{
	struct vb_rwq *wq = make_wq(cq, 0);

	assert_int_equal(post(wq, mr, 0, BUFFER_BYTES), EINVAL);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	for (uint32_t i = 0; i < WR_MAX; i++)
		assert_int_equal(post(wq, mr, i, BUFFER_BYTES), 0);
	assert_int_equal(post(wq, mr, 0, BUFFER_BYTES), ENOMEM);
	assert_empty(cq);
	/* To ERR all is flushed, and what is posted later as well. */
	assert_int_equal(wq_state_set(wq, IBV_WQS_ERR), 0);
	assert_int_equal(post(wq, mr, 5, BUFFER_BYTES), 0);
	for (uint32_t i = 0; i < WR_MAX; i++)
		assert_int_equal(taken(cq, wq, IBV_WC_WR_FLUSH_ERR).wc.wr_id, i);
	assert_int_equal(taken(cq, wq, IBV_WC_WR_FLUSH_ERR).wc.wr_id, 5);
	assert_empty(cq);
	/* To RESET it is forgotten, and with it what was completed. */
	assert_int_equal(wq_state_set(wq, IBV_WQS_RESET), 0);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post(wq, mr, 1, BUFFER_BYTES), 0);
	assert_int_equal(wq_state_set(wq, IBV_WQS_ERR), 0);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RESET), 0);
	assert_empty(cq);
	drop_wq(wq);
}

WITH_SEGMENT(test_receiving)
{
	struct vb_rwq *wq = make_wq(cq, 0);
	struct frame frame;
	struct vb_cqe cqe;

	frame_make(&frame, 1, 2);
	give(wq, &frame, 0);
	assert_int_equal(dropped(VB_STAT_DROP_STATE), 1);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	give(wq, &frame, 0);
	assert_int_equal(dropped(VB_STAT_DROP_NO_RECV), 1);
	assert_empty(cq);
	assert_int_equal(post(wq, mr, 3, BUFFER_BYTES), 0);
	give(wq, &frame, 0x1234);
	cqe = taken(cq, wq, IBV_WC_SUCCESS);
	assert_int_equal(cqe.wc.wr_id, 3);
	assert_int_equal(cqe.wc.byte_len, frame.bytes);
	assert_int_equal(cqe.wc.wc_flags, IBV_WC_IP_CSUM_OK);
	assert_int_equal(cqe.flow_tag, 0x1234);
	assert_int_equal(cqe.cvlan, 0);
	assert_memory_equal(buffers[3], frame.octets, frame.bytes);
	frame.octets[frame.bytes - 1] ^= 1;
	assert_int_equal(post(wq, mr, 4, BUFFER_BYTES), 0);
	give(wq, &frame, 0);
	assert_int_equal(taken(cq, wq, IBV_WC_SUCCESS).wc.wc_flags, 0);
	drop_wq(wq);
}

WITH_SEGMENT(test_flags)
{
	struct vb_rwq *wq = make_wq(cq, IBV_WQ_FLAGS_SCATTER_FCS | IBV_WQ_FLAGS_CVLAN_STRIPPING |
						IBV_WQ_FLAGS_PCI_WRITE_END_PADDING);
	struct ibv_wq_attr keep = {.attr_mask = IBV_WQ_ATTR_FLAGS,
				   .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING};
	uint8_t fcs[VB_ETH_FCS_BYTES];
	struct frame frame;
	struct vb_cqe cqe;

	frame_make(&frame, 1, 2);
	vb_eth_fcs(frame.octets, frame.bytes, fcs);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post(wq, mr, 0, BUFFER_BYTES), 0);
	give(wq, &frame, 0);
	cqe = taken(cq, wq, IBV_WC_SUCCESS);
	assert_int_equal(cqe.wc.byte_len, frame.bytes);
	assert_int_equal(cqe.cvlan, 0x2064);
	assert_memory_equal(buffers[0], frame.octets, 12);
	assert_memory_equal(buffers[0] + 12, frame.octets + 16, frame.bytes - 16);
	assert_memory_equal(buffers[0] + frame.bytes - 4, fcs, 4);
	/* Tags are left in place from now on. */
	assert_int_equal(vb_rwq_modify(wq, &keep), 0);
	assert_int_equal(post(wq, mr, 0, BUFFER_BYTES), 0);
	give(wq, &frame, 0);
	cqe = taken(cq, wq, IBV_WC_SUCCESS);
	assert_int_equal(cqe.wc.byte_len, frame.bytes + 4);
	assert_int_equal(cqe.cvlan, 0);
	drop_wq(wq);
}

/* A request that ends in error takes the queue along: completions tell of all of them. */
WITH_SEGMENT(test_errors)
{
	struct frame frame;

	frame_make(&frame, 1, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct vb_rwq *wq = make_wq(cq, 0);
		struct vb_mr wrong = {.ibv.lkey = mr->ibv.lkey + 1};

		assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
		assert_int_equal(post(wq, i ? &wrong : mr, 6, i ? 200 : frame.bytes - 1), 0);
		assert_int_equal(post(wq, mr, 7, 200), 0);
		give(wq, &frame, 0);
		assert_int_equal(
			taken(cq, wq, i ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR).wc.wr_id, 6);
		assert_int_equal(taken(cq, wq, IBV_WC_WR_FLUSH_ERR).wc.wr_id, 7);
		assert_int_equal(wq->ibv.state, IBV_WQS_ERR);
		assert_int_equal(fix.signals[FD_ASYNC], 0);
		drop_wq(wq);
	}
}

/* What no completion can tell, an event does; nobody reads it, and it goes with the queue. */
WITH_SEGMENT(test_overrun)
{
	struct vb_cq *small = make_cq(1, NULL);
	struct vb_rwq *wq = make_wq(small, 0), *beside = make_wq(small, 0);
	struct ibv_async_event event;
	struct frame frame;

	frame_make(&frame, 1, 2);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	assert_int_equal(wq_state_set(beside, IBV_WQS_RDY), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(post(wq, mr, i, BUFFER_BYTES), 0);
		give(wq, &frame, 0);
	}
	assert_event(IBV_EVENT_CQ_ERR);
	assert_event(IBV_EVENT_WQ_FATAL);
	assert_int_equal(wq->events_delivered, 1);
	assert_int_equal(wq->ibv.state, IBV_WQS_ERR);
	/* The other one has nothing to complete by any more. */
	vb_rwqs_fail(fix.nic, small, NULL);
	assert_int_equal(beside->ibv.state, IBV_WQS_ERR);
	assert_int_equal(fix.signals[FD_ASYNC], 1);
	drop_wq(beside);
	assert_int_equal(fix.signals[FD_ASYNC], 0);
	assert_false(vb_ctx_event_pop(fix.ctx, &event));
	drop_wq(wq);
	drop_cq(small);
}

WITH_SEGMENT(test_device_fails)
{
	struct vb_rwq *wq = make_wq(cq, 0), *idle = make_wq(cq, 0);

	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post(wq, mr, 2, BUFFER_BYTES), 0);
	vb_nic_fail(fix.nic);
	assert_int_equal(taken(cq, wq, IBV_WC_WR_FLUSH_ERR).wc.wr_id, 2);
	assert_int_equal(idle->ibv.state, IBV_WQS_RESET);
	assert_event(IBV_EVENT_DEVICE_FATAL);
	assert_int_equal(fix.signals[FD_ASYNC], 0);
	drop_wq(wq);
	drop_wq(idle);
}

/* ibv_create_wq(3): "Packets won't be dropped immediately if no WQEs". */
WITH_SEGMENT(test_delay_drop)
{
	struct vb_rwq *wq = make_wq(cq, IBV_WQ_FLAGS_DELAY_DROP);
	struct frame frame;

	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	for (uint32_t i = 0; i < VB_RWQ_DELAYED_MAX + 3; i++) {
		frame_make(&frame, 1, (uint16_t)i);
		give(wq, &frame, i + 1);
	}
	assert_int_equal(dropped(VB_STAT_DROP_NO_RECV), 3);
	for (uint32_t i = 0; i < VB_RWQ_DELAYED_MAX; i++) {
		struct vb_cqe cqe;

		assert_int_equal(post(wq, mr, 0, BUFFER_BYTES), 0);
		cqe = taken(cq, wq, IBV_WC_SUCCESS);
		frame_make(&frame, 1, (uint16_t)i);
		assert_int_equal(cqe.wc.byte_len, frame.bytes);
		assert_int_equal(cqe.flow_tag, i + 1);
		assert_memory_equal(buffers[0], frame.octets, frame.bytes);
		/* What comes now is behind what waits. */
		if (i == 0)
			give(wq, &frame, VB_RWQ_DELAYED_MAX + 1);
	}
	assert_empty(cq);
	assert_int_equal(post(wq, mr, 1, BUFFER_BYTES), 0);
	assert_int_equal(taken(cq, wq, IBV_WC_SUCCESS).flow_tag, VB_RWQ_DELAYED_MAX + 1);
	/* Nothing waits: no delay. */
	assert_int_equal(post(wq, mr, 1, BUFFER_BYTES), 0);
	give(wq, &frame, 5);
	assert_int_equal(taken(cq, wq, IBV_WC_SUCCESS).flow_tag, 5);
	/* A queue that stops keeps nothing. */
	give(wq, &frame, 6);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RESET), 0);
	assert_int_equal(wq_state_set(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post(wq, mr, 1, BUFFER_BYTES), 0);
	assert_empty(cq);
	drop_wq(wq);
}

WITH_SEGMENT(test_tables)
{
	struct vb_rwq *wq[2] = {make_wq(cq, 0), make_wq(cq, 0)};
	struct ibv_wq *places[4] = {&wq[0]->ibv, &wq[1]->ibv, &wq[0]->ibv, &wq[0]->ibv};
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 2, .ind_tbl = places};
	struct ibv_context other = {.device = NULL};
	struct ibv_wq stranger = {.context = &other};
	struct vb_rwq_table *table, *one;

	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), 0);
	assert_int_equal(table->mask, 3);
	attr.log_ind_tbl_size = 0;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &one), 0);
	assert_int_not_equal(table->ibv.ind_tbl_num, one->ibv.ind_tbl_num);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(vb_rwq_destroy(wq[i]), EBUSY);
	assert_int_equal(vb_rwq_table_destroy(table), 0);
	assert_int_equal(vb_rwq_destroy(wq[0]), EBUSY);
	assert_int_equal(vb_rwq_table_destroy(one), 0);

	attr.comp_mask = IBV_CREATE_IND_TABLE_RESERVED;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), EOPNOTSUPP);
	attr.comp_mask = 0;
	attr.log_ind_tbl_size = VB_RWQ_TABLE_LOG_MAX + 1;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), EINVAL);
	attr.log_ind_tbl_size = 2;
	attr.ind_tbl = NULL;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), EINVAL);
	attr.ind_tbl = places;
	places[3] = NULL;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), EINVAL);
	places[3] = &stranger;
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), EINVAL);
	places[3] = places[0];
	atomic_store(&fix.nic->special.rwqs.tables, VB_RWQ_TABLES_MAX);
	assert_int_equal(vb_rwq_table_create(fix.ctx, &attr, &table), ENOMEM);
	drop_wq(wq[0]);
	drop_wq(wq[1]);
}
