// SPDX-License-Identifier: BSD-2-Clause
//
// Gloo's collectives over its ibverbs transport, whose results are looked at.
//   gloo RANK RANKS FOLDER GID_INDEX
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <memory>
#include <vector>

#include <gloo/allgather_ring.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

using Context = std::shared_ptr<gloo::rendezvous::Context>;

static int rank, ranks;

// What a rank brings along; sums of it are exact.
static float brought(int of, int i)
{
	return of * 3 + i % 1000;
}

static void expect(bool holds, const char *what, int count)
{
	if (holds)
		return;
	printf("%s of %d: it is wrong\n", what, count);
	exit(1);
}

// An algorithm may go as soon as the other ranks are done with its memory, and its sends are
// completed; but some do not wait for their last one. Sends of a pair complete in order.
static void settle(const Context &context)
{
	std::vector<int> words(2 * ranks);
	std::vector<std::unique_ptr<gloo::transport::Buffer>> to(ranks), from(ranks);
	auto slot = context->nextSlot();

	for (int i = 0; i < ranks; i++) {
		if (i == rank)
			continue;
		to[i] = context->getPair(i)->createSendBuffer(slot, &words[i], sizeof(int));
		from[i] = context->getPair(i)->createRecvBuffer(slot, &words[ranks + i], sizeof(int));
	}
	for (int i = 0; i < ranks; i++)
		if (i != rank)
			to[i]->send();
	for (int i = 0; i < ranks; i++) {
		if (i == rank)
			continue;
		to[i]->waitSend();
		from[i]->waitRecv();
	}
}

template <typename Reduction>
static void allreduce(const Context &context, const char *what, int count)
{
	std::vector<float> data(count);
	Reduction algorithm(context, {data.data()}, count);

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < count; i++)
			data[i] = brought(rank, i);
		algorithm.run();
		for (int i = 0; i < count; i++)
			expect(data[i] == brought(0, i) * ranks + 3 * ranks * (ranks - 1) / 2, what, count);
	}
	settle(context);
}

static void broadcast(const Context &context, int count)
{
	std::vector<float> data(count);
	gloo::BroadcastOneToAll<float> algorithm(context, {data.data()}, count, ranks - 1);

	for (int i = 0; i < count; i++)
		data[i] = brought(rank, i);
	algorithm.run();
	for (int i = 0; i < count; i++)
		expect(data[i] == brought(ranks - 1, i), "broadcast", count);
	settle(context);
}

static void allgather(const Context &context, int count)
{
	std::vector<float> data(count), all(count * ranks);
	gloo::AllgatherRing<float> algorithm(context, {data.data()}, all.data(), count);

	for (int i = 0; i < count; i++)
		data[i] = brought(rank, i);
	algorithm.run();
	for (int i = 0; i < count * ranks; i++)
		expect(all[i] == brought(i / count, i % count), "allgather", count);
	settle(context);
}

int main(int, char **argv)
{
	rank = atoi(argv[1]), ranks = atoi(argv[2]);
	auto device = gloo::transport::ibverbs::CreateDevice({"verbatim0", 1, atoi(argv[4])});
	gloo::rendezvous::FileStore store(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);

	context->connectFullMesh(store, device);
	for (int count : {1, 1000, 77777, 500000}) {
		allreduce<gloo::AllreduceRing<float>>(context, "ring", count);
		allreduce<gloo::AllreduceRingChunked<float>>(context, "chunked ring", count);
		allreduce<gloo::AllreduceHalvingDoubling<float>>(context, "halving and doubling", count);
		broadcast(context, count);
		allgather(context, count);
	}
	gloo::BarrierAllToAll barrier(context);
	barrier.run();
	settle(context);
	printf("rank %d of %d is right\n", rank, ranks);
	// The others may be gone before our pairs notice.
	fflush(stdout);
	_exit(0);
}
