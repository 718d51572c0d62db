"""Ranks on several hosts, where TRANSHIP_BACKEND chooses them: the stub of two hosts that share nothing, or an MPI job."""

import os

import numpy as np
import pytest
from conftest import CHOSEN

import tranship as ts

pytestmark = pytest.mark.skipif(not CHOSEN, reason="TRANSHIP_BACKEND chooses no hosts")


def hosts_of(run, size):
    if CHOSEN == "job":
        return run(size, lambda world: os.uname().nodename)
    return [rank % 2 if CHOSEN == "dealt" else rank * 2 // size for rank in range(size)]


def test_ranks_reach_those_of_their_host_alone(run):
    def body(world):
        return [world.is_reachable(peer) for peer in range(world.size)]

    hosts = hosts_of(run, 4)
    assert run(4, body) == [[rank == peer for peer in hosts] for rank in hosts]


def test_hosts_share_no_mapping(run):
    def body(world):
        with open("/proc/self/maps") as maps:
            lines = [line.split(maxsplit=5) for line in maps]
        # Segments of System V, which MPIs use, are numbered anew on each host.
        lines = [line for line in lines if not line[-1].startswith("/SYSV")]
        return {(line[3], line[4]) for line in lines if line[1][1] == "w" and line[1][3] == "s"}

    mapped, hosts = run(4, body), hosts_of(run, 4)
    for rank in range(4):
        for peer in range(4):
            shared = mapped[rank] & mapped[peer]
            assert bool(shared) == (hosts[rank] == hosts[peer]), (rank, peer, shared)


def test_a_redistribution_and_a_halo_over_both_hosts(run):
    def body(world):
        def value(i, j):
            return 100 * i + j

        a = ts.array(world, ts.distribution((12, 10), (4, 1)))
        b = ts.array(world, ts.distribution((12, 10), (2, 2), overlap=1, edge="toroidal"))
        a.fill(value)
        ts.Redistribution(a, b)()
        ts.halo(b)()
        return b.count_wrong(value)

    assert run(4, body) == [0] * 4


def test_a_rank_that_fails_on_one_host_fails_the_others(run):
    def body(world):
        if world.rank == 1:
            raise ValueError("broken")
        world.barrier()

    with pytest.raises(ts.Error, match="broken") as caught:
        run(4, body)
    assert caught.value.rank == 1
