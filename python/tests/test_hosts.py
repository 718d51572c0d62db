"""The stub of hosts, where TRANSHIP_BACKEND chooses it: two hosts that share nothing."""

import os

import numpy as np
import pytest

import tranship as ts

CHOSEN = os.environ.get("TRANSHIP_BACKEND")
pytestmark = pytest.mark.skipif(not CHOSEN, reason="TRANSHIP_BACKEND chooses no hosts")


def host_of(rank, size):
    return rank % 2 if CHOSEN == "dealt" else rank * 2 // size


def test_ranks_reach_those_of_their_host_alone(run):
    def body(world):
        return [world.is_reachable(peer) for peer in range(world.size)]

    assert run(4, body) == [[host_of(rank, 4) == host_of(peer, 4) for peer in range(4)] for rank in range(4)]


def test_hosts_share_no_mapping(run):
    def body(world):
        with open("/proc/self/maps") as maps:
            lines = [line.split() for line in maps]
        return {(line[3], line[4]) for line in lines if line[1][1] == "w" and line[1][3] == "s"}

    mapped = run(4, body)
    for rank in range(4):
        for peer in range(4):
            shared = mapped[rank] & mapped[peer]
            assert bool(shared) == (host_of(rank, 4) == host_of(peer, 4)), (rank, peer, shared)


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
