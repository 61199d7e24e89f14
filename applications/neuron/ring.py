"""Cells in a ring, dealt out to the ranks: a spike goes round, over MPI where the next cell is another rank's."""

import sys
import time

from neuron import h

CELLS = int(sys.argv[1]) if len(sys.argv) > 1 else 64
COMPRESSED = int(sys.argv[2]) if len(sys.argv) > 2 else 0  # spikes of a rank that go with the first exchange
STOP_MS = 200.0

h.nrnmpi_init()
context = h.ParallelContext()
rank, ranks = int(context.id()), int(context.nhost())

cells, spikes, numbers, kept = [], h.Vector(), h.Vector(), []
for number in range(rank, CELLS, ranks):
    soma, dendrite = h.Section(name=f"soma{number}"), h.Section(name=f"dendrite{number}")
    soma.L = soma.diam = 12.6
    dendrite.L, dendrite.diam, dendrite.nseg = 200.0, 1.0, 21
    dendrite.connect(soma(1))
    soma.insert("hh")
    dendrite.insert("pas")
    synapse = h.ExpSyn(dendrite(0.3))
    synapse.tau = 2.0
    context.set_gid2node(number, rank)
    context.cell(number, h.NetCon(soma(0.5)._ref_v, None, sec=soma))
    context.spike_record(number, spikes, numbers)
    cells.append((soma, dendrite, synapse))
for place, number in enumerate(range(rank, CELLS, ranks)):
    connection = context.gid_connect((number - 1) % CELLS, cells[place][2])
    connection.delay, connection.weight[0] = 1.0, 0.02
    kept.append(connection)
    if number % 16 == 0:
        start = h.NetStim()
        start.number, start.start = 1, 5.0
        begin = h.NetCon(start, cells[place][2])
        begin.delay, begin.weight[0] = 1.0, 0.02
        kept += [start, begin]

context.set_maxstep(10)
if COMPRESSED:
    context.spike_compress(COMPRESSED, 0)
h.dt = 0.025
h.finitialize(-65)
begun = time.perf_counter()
context.psolve(STOP_MS)
took = time.perf_counter() - begun
total = context.allreduce(spikes.size(), 1)
weighed = context.allreduce(sum(at * (number + 1) for at, number in zip(spikes, numbers, strict=True)), 1)
if rank == 0:
    print(f"{int(total)} spikes, the sum of their times with weights {weighed:.6f} ms")
    print(f"solved in {took:.6f} s")
context.barrier()
h.quit()
