"""MSCCL++'s language and executor: the plans that are written, what is refused, and what runs."""

import contextlib
import io
import json
import os
import pathlib
import runpy
import sys

import numpy as np
import pytest

import tranship as ts
import tranship.mscclpp
from tranship.mscclpp import DataType, ExecutionPlan, Executor, PacketType
from tranship.mscclpp.language.channel import MemoryChannel, PortChannel, SwitchChannel
from tranship.mscclpp.language.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    Broadcast,
    Collective,
    Reduce,
    ReduceScatter,
    SendRecv,
    TestCollective,
)
from tranship.mscclpp.language.general import JSON
from tranship.mscclpp.language.internal.globals import get_program
from tranship.mscclpp.language.internal.types import BufferType, Chunk, Instruction, ReduceOperationType, SyncType
from tranship.mscclpp.language.loop import LoopIterationContext
from tranship.mscclpp.language.program import CollectiveProgram
from tranship.mscclpp.language.rank import Buffer, Rank, Semaphore
from tranship.mscclpp.language.thread_block_group import ThreadBlockGroup
from tranship.mscclpp.language.utils import AlgoSpec, ReplicationPolicy

PLANS = pathlib.Path(os.environ.get("TRANSHIP_CONFORMANCE_DIR", "")) / "mscclpp" / "plans"


def normal(text):
    """A plan as values, without what has no order in MSCCL++."""
    plan = json.loads(ts.Program(text).to_json())

    def sort_ids(ops):
        for op in ops:
            if op["name"] in ("signal", "wait", "rlxsignal", "rlxwait", "flush"):
                op["channel_ids"].sort()
            sort_ids(op.get("ops", []))

    for gpu in plan["gpus"]:
        for buffer in gpu["remote_buffers"]:
            buffer["access_channel_types"].sort()
        for block in gpu["threadblocks"]:
            sort_ids(block["ops"])
    return plan


def words(program, rank=0, block=0):
    plan = json.loads(program.to_json())
    return [op["name"] for op in plan["gpus"][rank]["threadblocks"][block]["ops"]]


# --- Plans that MSCCL++ has written, written again -------------------------------------------------------------------


def allgather_in_packets(ranks):
    with CollectiveProgram(
        f"sn_allgather_pkt_{ranks}r",
        AllGather(ranks, 1, True),
        ranks,
        protocol="LL",
        use_double_scratch_buffer=True,
    ):
        inboxes = [Buffer(rank, ranks) for rank in range(ranks)]
        for rank in range(ranks):
            for step in range(1, ranks):
                peer = (rank + step) % ranks
                part = slice(rank, rank + 1)
                MemoryChannel(peer, rank).put_packets(
                    inboxes[peer][part], Rank(rank).get_output_buffer()[part], tb=step - 1
                )
        for rank in range(ranks):
            for step in range(1, ranks):
                peer = (rank + step) % ranks
                part = slice(peer, peer + 1)
                Rank(rank).unpack_packets(Rank(rank).get_output_buffer()[part], inboxes[rank][part], ranks + step - 2)
        return JSON()


def allreduce_by_switch(ranks):
    with CollectiveProgram(
        f"sn_allreduce_nvls_zero_copy_{ranks}r", AllReduce(ranks, 1, True), ranks, instances=8
    ):
        switch = SwitchChannel(list(range(ranks)), BufferType.input)
        pairs = [(rank, peer) for rank in range(ranks) for peer in range(ranks) if rank != peer]
        channels = {(rank, peer): MemoryChannel(peer, rank) for rank, peer in pairs}

        def meet(rank):
            of_rank = [channels[pair] for pair in pairs if pair[0] == rank]
            for channel in of_rank:
                channel.signal(0, relaxed=True)
            for channel in of_rank:
                channel.wait(0, SyncType.after, relaxed=True)

        for rank in range(ranks):
            meet(rank)
            part = Rank(rank).get_input_buffer()[rank : rank + 1]
            switch.at_rank(rank).reduce(rank, 1, part, 0)
            switch.at_rank(rank).broadcast(part, rank, 1, tb=0)
        for rank in range(ranks):
            of_rank = [channels[pair] for pair in pairs if pair[0] == rank]
            for channel in of_rank:
                channel.signal(0, SyncType.before, relaxed=True)
            for channel in of_rank:
                channel.wait(0, relaxed=True)
        return JSON()


def ring_of_ports(ranks, instances, name):
    with CollectiveProgram(name, SendRecv(ranks, 1, False), ranks, instances=instances):
        right, left = {}, {}
        for rank in range(ranks):
            ends = [(right, (rank + 1) % ranks), (left, (rank - 1) % ranks)]
            # Between two ranks there are two connections, which both must number alike.
            for channels, peer in ends[::-1] if ranks == 2 and rank == 1 else ends:
                channels[rank] = PortChannel(peer, rank)
        for rank in range(ranks):
            left[rank].signal(0, SyncType.none)
            right[rank].wait(0, SyncType.after)
            target = Rank((rank + 1) % ranks).get_output_buffer()
            right[rank].put_with_signal(target[:], Rank(rank).get_input_buffer()[:], 0)
            left[rank].wait(0, SyncType.none)
        return JSON()


WRITTEN_AGAIN = {
    "sn_allgather_pkt_2r": lambda: allgather_in_packets(2),
    "sn_allgather_pkt_4r": lambda: allgather_in_packets(4),
    "sn_allreduce_nvls_zero_copy_2r": lambda: allreduce_by_switch(2),
    "sn_allreduce_nvls_zero_copy_4r": lambda: allreduce_by_switch(4),
    "mn_send_recv_1x2_i4": lambda: ring_of_ports(2, 4, "mn_send_recv_1x2_i4"),
    "mn_send_recv_1x4_i1": lambda: ring_of_ports(4, 1, "mn_send_recv_1x4_i1"),
}


@pytest.mark.parametrize("name", list(WRITTEN_AGAIN))
def test_plans_are_those_of_the_original(name):
    ours = WRITTEN_AGAIN[name]()
    assert ts.Program(ours).verify()
    if not PLANS.is_dir():
        pytest.skip("TRANSHIP_CONFORMANCE_DIR has no plans of MSCCL++")
    assert normal(ours) == normal((PLANS / f"{name}.json").read_text())


# Plans that differ from the original's, which joins steps although the second replaces the result of the first.
DIFFERENT = {"ut_get_fuse_test", "ut_reduce_fuse_test", "ut_tbg_reduce_fuse_test"}


def test_scripts_of_the_original_run_unchanged(monkeypatch):
    """All scripts of a checkout of MSCCL++, whose index of plans says how each was called."""
    checkout = os.environ.get("TRANSHIP_MSCCLPP_CHECKOUT")
    if not checkout or not PLANS.is_dir():
        pytest.skip("TRANSHIP_MSCCLPP_CHECKOUT is not set: a checkout of MSCCL++, beside TRANSHIP_CONFORMANCE_DIR")
    monkeypatch.setitem(sys.modules, "mscclpp", tranship.mscclpp)
    same = 0
    for row in (PLANS.parent / "INDEX.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) < 3 or not cells[1].endswith(".json") or not cells[2] or "default_algos" in cells[2]:
            continue
        plan = (PLANS / cells[1]).read_text()
        script, *arguments = cells[2].split()
        folder = "python" if script.startswith("mscclpp") else "test"
        if "unit_tests" not in script:
            arguments += ["--name", json.loads(plan)["name"]]
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(os.path.join(checkout, folder, script), run_name="__main__")
        ours, theirs = normal(printed.getvalue()), normal(plan)
        for one in (ours, theirs):
            del one["name"], one["min_message_size"], one["max_message_size"], one["num_threads_per_block"]
        if cells[1].removesuffix(".json") not in DIFFERENT:
            assert ours == theirs, cells[1]
            same += 1
    assert same > 60


def test_scripts_that_name_the_original_run(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text(
        "from mscclpp.language.channel import *\n"
        "from mscclpp.language.rank import *\n"
        "from mscclpp.language.general import *\n"
        "from mscclpp.language.program import *\n"
        "from mscclpp.language.collectives import *\n"
        "from mscclpp.language.loop import *\n"
        "from mscclpp.language.utils import AlgoSpec\n"
        "spec = AlgoSpec(name='s', collective=AllToAll(1, 1, False), nranks_per_node=1, world_size=1, in_place=False,\n"
        "                instances=1, protocol='Simple')\n"
        "with CollectiveProgram.from_spec(spec):\n"
        "    Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:], tb=0)\n"
        "    print(JSON())\n"
    )
    monkeypatch.setitem(sys.modules, "mscclpp", tranship.mscclpp)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(script), run_name="__main__")
    for module in [name for name in sys.modules if name.startswith("mscclpp.")]:
        monkeypatch.delitem(sys.modules, module)
    program = ts.Program(printed.getvalue())
    assert (program.name, program.collective, program.steps) == ("s", "alltoall", 1)
    assert program.verify()


# --- What is refused ----------------------------------------------------------------------------------------------------


@pytest.fixture
def program():
    with CollectiveProgram("refusals", TestCollective(2, 4, 4), 2) as program:
        yield program


def test_there_must_be_a_program():
    with pytest.raises(RuntimeError, match="no program"):
        Rank(0)
    with pytest.raises(RuntimeError):
        get_program()
    with pytest.raises(RuntimeError):
        JSON()


def test_slices(program):
    buffer = Rank(0).get_input_buffer()
    chunk = buffer[1:3]
    assert (chunk.rank, chunk.buffer, chunk.index, chunk.size) == (0, BufferType.input, 1, 2)
    assert chunk.to_dict() == {"rank": 0, "type": "i", "index": 1, "size": 2}
    assert buffer[:].size == 4 and buffer[2:2].size == 0 and hash(chunk) == hash(buffer[1:3]) and chunk == buffer[1:3]
    with pytest.raises(TypeError, match="int"):
        buffer[0]
    for wrong in (slice(0, 4, 2), slice(-1, 2), slice(3, 1)):
        with pytest.raises(ValueError):
            buffer[wrong]
    with pytest.raises(RuntimeError, match=r"\[0\.\.5\) is not a range of a buffer of 4 chunks"):
        buffer[:5]
    assert buffer[np.int64(1) : np.int32(3)] == chunk and Rank(np.int64(1)) == Rank(1)
    first, second = Buffer(1, 2), Buffer(1, 3)
    assert (first[0:2].index, second[1:3].index) == (0, 3)


NUMBER = "expected a whole number"
REFUSED = {
    "negative rank": (lambda: MemoryChannel(-1, 0), "-1 is out of bounds"),
    "rank too large": (lambda: PortChannel(0, 2), "rank 2"),
    "rank": (lambda: Rank(-1), "-1"),
    "switch": (lambda: SwitchChannel([0, -1], BufferType.input), "-1"),
    "switch rank": (lambda: SwitchChannel([0], BufferType.input).at_rank(1), "rank 1"),
    "switch size": (
        lambda: SwitchChannel([0, 1], BufferType.input).at_rank(0).reduce(0, 2, Rank(0).get_output_buffer()[:1], 0),
        "size 1",
    ),
    "switch range": (
        lambda: SwitchChannel([0, 1], BufferType.input).reduce(0, 3, 2, Rank(0).get_output_buffer()[:2], 0),
        r"\[3\.\.5\) of rank 0",
    ),
    "chunk of another rank": (
        lambda: Rank(0).copy(Rank(1).get_output_buffer()[:1], Rank(0).get_input_buffer()[:1], 0),
        "rank 1",
    ),
    "sizes of a get": (
        lambda: MemoryChannel(1, 0).get(Rank(0).get_output_buffer()[:2], Rank(1).get_input_buffer()[:1], 0),
        "the target has 2 chunks, the source 1",
    ),
    "no block": (lambda: Rank(0).copy(Rank(0).get_output_buffer()[:1], Rank(0).get_input_buffer()[:1]), "tb_group"),
    "negative block": (
        lambda: Rank(0).copy(Rank(0).get_output_buffer()[:1], Rank(0).get_input_buffer()[:1], tb=-1),
        "-1",
    ),
    "no others": (lambda: Rank(0).reduce(Rank(0).get_input_buffer()[:1], [], 0), "no operand beside the first source"),
    "plain data as packets": (
        lambda: PortChannel(1, 0).put_packets(Buffer(1, 1)[:], Rank(0).get_input_buffer()[:1], 0),
        "scratch",
    ),
    "packets": (
        lambda: MemoryChannel(1, 0).put_packets(Rank(1).get_input_buffer()[:1], Rank(0).get_input_buffer()[:1], 0),
        "scratch",
    ),
    "semaphore": (lambda: Semaphore(0, -1), "-1"),
    "barrier": (lambda: Rank(0).barrier([]), "at least 1 thread block"),
    "loop": (lambda: LoopIterationContext(0, 1).__enter__(), "0 bytes"),
    "scratch": (lambda: Buffer(5, 1), "rank 5"),
    "a number that is none": (lambda: Buffer(0, "many"), f"{NUMBER} from {-2**63} to {2**63 - 1}, not 'many'"),
    "a rank that is none": (lambda: Rank("0"), "a rank is a whole number, not '0'"),
    "a rank with a fraction": (lambda: Rank(1.0), "a rank is a whole number, not 1.0"),
    "a slice with a fraction": (lambda: Rank(0).get_input_buffer()[0:1.5], "stop of a slice is a whole number, not 1.5"),
    "a slice from none": (lambda: Rank(0).get_input_buffer()["a":1], "start of a slice is a whole number, not 'a'"),
    "a rank of 32 bits": (lambda: MemoryChannel(2**31, 0), f"{NUMBER} from {-2**31} to {2**31 - 1}, not {2**31}"),
    "a block with a fraction": (lambda: MemoryChannel(1, 0).wait(1.5), f"{NUMBER} from {-2**31} to .*, not 1.5"),
    "no block at all": (lambda: MemoryChannel(1, 0).wait(None), f"{NUMBER} from {-2**31} to .*, not None"),
    "blocks of a barrier": (lambda: Rank(0).barrier([0, 2**31]), f"whole numbers .* not .0, {2**31}."),
    "chunks": (
        lambda: Rank(0).copy(Chunk(0, BufferType.output, 0, 1), Chunk(0, BufferType.input, 2**63, 1), 0),
        f"{NUMBER} .* not {2**63}",
    ),
    "ranks of a collective": (lambda: AllReduce(2.0, 1, True), "num_ranks is a whole number, not 2.0"),
    "instances": (lambda: CollectiveProgram("p", AllReduce(2, 1, True), 2, instances=1.5), f"{NUMBER} .* not 1.5"),
    "size of messages": (
        lambda: CollectiveProgram("p", AllReduce(2, 1, True), 2, max_message_size=2**64),
        f"{NUMBER} from 0 to {2**64 - 1}, not {2**64}",
    ),
    "a name": (lambda: CollectiveProgram(3, AllReduce(2, 1, True), 2), "expected a text, not 3"),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_refusals(program, what):
    call, text = REFUSED[what]
    with pytest.raises(RuntimeError, match=text) as error:
        call()
    assert isinstance(error.value, ts.Error) and isinstance(error.value, ValueError)
    assert program.lower().steps == 0


def test_more_refusals():
    with pytest.raises(ValueError, match="twice"):
        ThreadBlockGroup([0, 1, 0])
    group = ThreadBlockGroup([4, 2])
    assert group.numtb() == 2 and group.get_internal_id(2) == 1
    with pytest.raises(ValueError):
        group.get_internal_id(0)
    with pytest.raises(AssertionError, match="Complex"):
        CollectiveProgram("p", AllReduce(2, 1, True), 2, protocol="Complex")
    with pytest.raises(RuntimeError, match="the program has 3 ranks, but the collective 2"):
        CollectiveProgram("p", AllReduce(2, 1, True), 3)
    with pytest.raises(NotImplementedError):
        CollectiveProgram("p", Collective(2, 1, True), 2)


def test_a_group_of_blocks_forwards_packets_over_a_port():
    with CollectiveProgram("forward", TestCollective(2, 1, 1), 2, protocol="LL") as forward:
        own, there = Buffer(0, 1), Buffer(1, 1)
        group = ThreadBlockGroup([0, 1])
        Rank(0).copy_packets(own[:1], Rank(0).get_input_buffer()[:1], tb_group=group)
        PortChannel(1, 0).read_put_packets(there[:1], own[:1], tb_group=group)
        Rank(1).unpack_packets(Rank(1).get_output_buffer()[:1], there[:1], tb=0)
    ops = [block["ops"] for block in json.loads(forward.to_json())["gpus"][0]["threadblocks"]]
    assert [[op["name"] for op in block] for block in ops] == [["cpkt", "rppkt"]] * 2
    assert [block[1]["tbg_info"] for block in ops] == [{"tb_id": part, "tbg_size": 2} for part in range(2)]
    assert forward.lower().verify(), forward.lower().verify()
    with pytest.raises(ValueError, match="tb_group"):
        with CollectiveProgram("forward", TestCollective(2, 1, 1), 2):
            PortChannel(1, 0).read_put_packets(Buffer(1, 1)[:1], Buffer(0, 1)[:1])


def test_a_block_of_a_group_does_its_part():
    group = ThreadBlockGroup([1, 0])
    with CollectiveProgram("parts", AllGather(2, 1, False), 2) as parts:
        channels = [MemoryChannel(1 - rank, rank) for rank in range(2)]
        for rank in range(2):
            source, place = Rank(rank).get_input_buffer()[:], slice(rank, rank + 1)
            channels[rank].signal(0, relaxed=True)
            channels[rank].wait(0, relaxed=True)
            Rank(rank).barrier([0, 1])
            for tb in group.tb_list:
                Rank(rank).copy(Rank(rank).get_output_buffer()[place], source, tb=tb, tb_group=group)
                channels[rank].put(Rank(1 - rank).get_output_buffer()[place], source, tb=tb, tb_group=group)
            Rank(rank).barrier([0, 1])
            channels[rank].signal(0)
            channels[rank].wait(0)
        with pytest.raises(ValueError, match="2 is not in the group of 2"):
            Rank(0).copy(Rank(0).get_output_buffer()[:1], Rank(0).get_input_buffer()[:], tb=2, tb_group=group)
    plan = json.loads(parts.to_json())
    for block, position in ((0, 1), (1, 0)):
        ops = plan["gpus"][0]["threadblocks"][block]["ops"]
        parted = [op["tbg_info"] for op in ops if op["name"] in ("copy", "put")]
        assert parted == [{"tb_id": position, "tbg_size": 2}] * 2
    assert parts.lower().verify(), parts.lower().verify()


def test_names_of_the_inside_can_be_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "mscclpp", tranship.mscclpp)
    names = {}
    exec(
        "import mscclpp.language\n"
        "spec = mscclpp.language.utils.AlgoSpec\n"
        "chunk = mscclpp.language.internal.types.Chunk\n"
        "from mscclpp.language.channel import *\n"
        "from mscclpp.language.rank import *\n"
        "from mscclpp.language.program import *\n"
        "from mscclpp.language.loop import *\n"
        "from mscclpp.language.internal.types import *\n"
        "from mscclpp.language.internal.operations import *\n"
        "from mscclpp.language.internal.gpu import *\n"
        "from mscclpp.language.internal.threadblock import *\n"
        "from mscclpp.language.internal.optimizer import *\n"
        "from mscclpp.language.internal.buffer_access import *\n"
        "from mscclpp.language.thread_block_group import *\n",
        names,
    )
    for module in [name for name in sys.modules if name.startswith("mscclpp.")]:
        monkeypatch.delitem(sys.modules, module)
    assert names["spec"] is AlgoSpec and names["set_program"] and names["List"] and names["dataclass"]
    kind = BufferType.output
    local = names["LocalChunk"](kind, 1, 2)
    assert local.to_dict() == {"type": "o", "index": 1, "size": 2}
    assert names["RemoteChunk"](kind, 1, 2, 3).to_dict() == {"buffer_id": 3, "index": 1, "size": 2}
    remote = names["RemoteBuffer"](0, 1, kind, names["ChannelType"].memory)
    assert remote.to_dict() == {"rank": 1, "type": "o", "access_channel_types": ["memory"]}
    assert remote == names["RemoteBuffer"](0, 1, kind, names["ChannelType"].port)
    read, write = names["DataAccessType"].read, names["DataAccessType"].write
    first, second = names["DataAccess"](1, 0, 3, kind, read), names["DataAccess"](2, 3, 4, kind, write)
    assert first < second and first.overlaps(second) and first.check_conflict(second)
    assert not first.check_conflict(names["DataAccess"](2, 0, 3, kind, read)) and read | write is (write | read)
    for name in ("PutOperation", "SyncOperation", "Gpu", "ThreadBlock", "BuffersAccess"):
        with pytest.raises(NotImplementedError, match=f"{name}: operations are written by Rank"):
            names[name](1, at=2)
    for name in ("fuse_operations", "add_data_sync", "check_data_sync_op"):
        with pytest.raises(NotImplementedError, match="lower"):
            names[name]([])
    for one in (MemoryChannel, PortChannel, SwitchChannel, Semaphore):
        one.reset()


def test_words_are_members_or_their_values():
    for policy, size in (("none", 1), ("interleaved", 2), (ReplicationPolicy.none, 1)):
        with CollectiveProgram("c", SendRecv(2, 1, False), 2, instances=2, replication_policy=policy) as copies:
            Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:], tb=0)
        assert copies.replication_policy is ReplicationPolicy(policy)
        places = [b["ops"][0]["src_buff"][0]["index"] for b in json.loads(copies.to_json())["gpus"][0]["threadblocks"]]
        assert len(set(places)) == size
    with pytest.raises(ValueError, match="'all' is no ReplicationPolicy: .*ReplicationPolicy.interleaved"):
        CollectiveProgram("c", AllReduce(2, 1, True), 2, replication_policy="all")
    with CollectiveProgram("words", AllReduce(2, 1, True), 2):
        assert SwitchChannel([0, 1], "i").buffer_type is BufferType.input
        MemoryChannel(1, 0).signal(0, data_sync="both")
        for wrong in (
            lambda: SwitchChannel([0, 1], "input"),
            lambda: MemoryChannel(1, 0).signal(0, data_sync="always"),
            lambda: Semaphore(0, 1).acquire(0, data_sync=3),
            lambda: Rank(0).reduce(Buffer(0, 1)[:], [Buffer(0, 1)[:]], 0, reduce_op="avg"),
        ):
            with pytest.raises(RuntimeError, match="is no (BufferType|SyncType|ReduceOperationType): it is one of"):
                wrong()


def test_all_names_of_a_script_are_in_one_place():
    names = {}
    exec("from tranship.mscclpp.language import *", names)
    for one in (AllReduce, AllGather, ReduceScatter, AllToAll, SendRecv, MemoryChannel, PortChannel, SwitchChannel, JSON):
        assert names[one.__name__] is one
    for one in (CollectiveProgram, Buffer, Rank, Semaphore, LoopIterationContext, ThreadBlockGroup, AlgoSpec, SyncType):
        assert names[one.__name__] is one


def test_signals_must_be_waited_for(program):
    channel = MemoryChannel(1, 0)
    channel.signal(0)
    with pytest.raises(RuntimeError, match="signals rank 1 1 time .* waits for it 0 times"):
        program.to_json()
    MemoryChannel(0, 1).wait(0)
    assert program.to_json() == program.to_json()


def test_loops_do_not_nest(program):
    with LoopIterationContext(64, 1) as loop:
        assert program.loop_context is loop
        with pytest.raises(RuntimeError, match="do not nest"):
            with LoopIterationContext(64, 1):
                pass
        Rank(0).copy(Rank(0).get_output_buffer()[:1], Rank(0).get_input_buffer()[:1], tb=0)
    assert words(program.lower()) == ["pipeline"]


# --- The passes --------------------------------------------------------------------------------------------------------


def test_passes_by_name(program):
    rank = Rank(0)
    source, target = rank.get_input_buffer(), rank.get_output_buffer()
    rank.reduce(source[:1], [source[1:2]], 0, dst_chunk=target[:1])
    rank.reduce(target[:1], [source[2:3]], 0)
    assert words(program.lower()) == ["re"]
    assert words(program.lower(fusion=False)) == ["re", "nop", "re"]
    assert words(program.lower(fusion=False, dependencies=False)) == ["re", "re"]
    with pytest.raises(TypeError):
        program.lower(polish=True)


def test_options_of_the_original():
    with CollectiveProgram("p", TestCollective(1, 3, 1), 1, instr_fusion=False, auto_sync=False) as program:
        rank = Rank(0)
        source, target = rank.get_input_buffer(), rank.get_output_buffer()
        rank.reduce(source[:1], [source[1:2]], 0, dst_chunk=target[:1], reduce_op=ReduceOperationType.max)
        rank.reduce(target[:1], [source[2:3]], 0, reduce_op=ReduceOperationType.prod)
    plan = json.loads(program.to_json(indent=None))
    assert [op["reduce_op"] for op in plan["gpus"][0]["threadblocks"][0]["ops"]] == ["max", "prod"]
    shared = CollectiveProgram("p", TestCollective(1, 1, 1), 1, 2, replication_policy=ReplicationPolicy.none)
    with shared:
        Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:], tb=0)
    blocks = json.loads(shared.to_json())["gpus"][0]["threadblocks"]
    assert [block["ops"][0]["tbg_info"] for block in blocks] == [{"tb_id": i, "tbg_size": 2} for i in range(2)]


def test_programs_nest_and_forget_nothing():
    with CollectiveProgram("outer", TestCollective(1, 1, 1), 1) as outer:
        with CollectiveProgram("inner", TestCollective(1, 1, 1), 1) as inner:
            assert get_program() is inner
            Rank(0).barrier([0, 1])
        assert get_program() is outer
        Rank(0).barrier([0, 2])
    for program in (outer, inner):
        assert json.loads(program.to_json())["gpus"][0]["threadblocks"][0]["ops"][0]["barrier_id"] == 0


def test_channels_belong_to_the_program_that_they_were_made_in():
    with CollectiveProgram("a", AllReduce(2, 1, True), 2) as a:
        memory, port, semaphore, scratch = MemoryChannel(1, 0), PortChannel(1, 0), Semaphore(0, 1), Buffer(0, 1)
        switch, ranks = SwitchChannel([0, 1], BufferType.input), [Rank(0), Rank(1)]
        inputs = [rank.get_input_buffer()[:1] for rank in ranks]
    operations = {
        "MemoryChannel": [
            lambda: memory.signal(tb=0),
            lambda: memory.wait(tb=0),
            lambda: memory.put(inputs[1], inputs[0], tb=0),
            lambda: memory.get(inputs[0], inputs[1], tb=0),
            lambda: memory.put_packets(inputs[1], inputs[0], tb=0),
            lambda: memory.read_put_packets(inputs[1], inputs[0], tb=0),
            lambda: memory.reduce(inputs[0], [inputs[1]], tb=0),
        ],
        "PortChannel": [
            lambda: port.signal(tb=0),
            lambda: port.wait(tb=0),
            lambda: port.flush(tb=0),
            lambda: port.put(inputs[1], inputs[0], tb=0),
            lambda: port.put_with_signal(inputs[1], inputs[0], tb=0),
            lambda: port.put_with_signal_and_flush(inputs[1], inputs[0], tb=0),
            lambda: port.put_packets(inputs[1], inputs[0], tb=0),
            lambda: port.read_put_packets(inputs[1], inputs[0], tb=0),
        ],
        "Semaphore": [lambda: semaphore.acquire(tb=0), lambda: semaphore.release(tb=0)],
        "SwitchChannel": [
            lambda: switch.at_rank(0).reduce(0, 1, inputs[0], tb=0),
            lambda: switch.at_rank(0).broadcast(inputs[0], 0, 1, tb=0),
            lambda: switch.broadcast_packets(0, inputs[0], 0, 1, tb=0),
        ],
        "Buffer": [lambda: scratch[:1]],
    }
    with CollectiveProgram("b", AllReduce(1, 1, True), 1) as b:
        for kind, of_kind in operations.items():
            for operation in of_kind:
                with pytest.raises(RuntimeError, match=f'a {kind} of the program "a" is used in the `with` of the program "b"'):
                    operation()
        ranks[0].copy(ranks[0].get_output_buffer()[:], ranks[0].get_input_buffer()[:], tb=0)  # a rank is a number
        for use in (ranks[1].get_input_buffer, ranks[1].get_output_buffer, lambda: ranks[1].barrier([0, 1])):
            with pytest.raises(RuntimeError, match='rank 1 is out of bounds: the program "b" has 1 rank'):
                use()
    for of_kind in operations.values():
        for operation in of_kind:
            with pytest.raises(RuntimeError, match="there is no program"):
                operation()
    assert (a.lower().steps, b.lower().steps) == (0, 1)
    with a:
        semaphore.acquire(tb=0)
        semaphore.release(tb=0)
    assert a.lower().steps > 0


def test_each_thread_writes_its_own_program():
    ranks = 8

    def body(world):
        with CollectiveProgram(f"of rank {world.rank}", TestCollective(1, 1, 1), 1) as program:
            for _ in range(3):
                world.barrier()
                assert get_program() is program
                Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:], tb=0)
        world.barrier()
        with pytest.raises(RuntimeError, match="no program"):
            get_program()
        return (program.name, program.lower(fusion=False, dependencies=False).steps)

    assert ts.launch(ranks, body) == [(f"of rank {rank}", 3) for rank in range(ranks)]


def test_words_of_the_original():
    assert SyncType.before | SyncType.after is SyncType.both and SyncType.both & SyncType.after is SyncType.after
    assert SyncType.both ^ SyncType.before is SyncType.after and str(SyncType.none) == "none"
    assert Instruction.read_reduce_send.value == "rres" and Instruction("gstore") is Instruction.group_store
    assert Instruction.relaxed_signal.value == "rlxsignal" and str(ReduceOperationType.sum) == "sum"
    assert BufferType.input < BufferType.output < BufferType.scratch


def test_collectives_say_their_chunks():
    sizes = {
        AllGather: (2, 6),
        AllReduce: (6, 6),
        AllToAll: (6, 6),
        ReduceScatter: (6, 2),
        SendRecv: (2, 2),
        Broadcast: (2, 2),
        Reduce: (2, 2),
    }
    for collective, (source, target) in sizes.items():
        buffers = collective(3, 2, False).init_buffers()
        assert len(buffers) == 3
        assert (buffers[2][BufferType.input].size, buffers[2][BufferType.output].size) == (source, target)


def test_a_finding_names_the_line(program):
    rank = Rank(0)
    rank.copy(rank.get_output_buffer()[:1], rank.get_input_buffer()[:1], tb=0)
    rank.copy(rank.get_output_buffer()[:1], rank.get_input_buffer()[1:2], tb=1)
    line = sys._getframe().f_lineno - 1
    found = program.lower().verify()
    assert isinstance(found.findings[0], ts.Finding) and found.findings[0].rank == 0
    assert not found and found.findings[0].kind == "race" and f"line {line}" in str(found)


# --- Execution ---------------------------------------------------------------------------------------------------------


def test_programs_run(run):
    plan = ts.Program(allgather_in_packets(2))

    def body(world):
        execute = plan.executor(world, 5, "i4")
        assert isinstance(execute, ts.ProgramExecutor)
        outputs = []
        for launch in range(3):
            outputs.append(execute(np.arange(5, dtype="i4") + 10 * world.rank + 100 * launch))
        assert execute.input_elements == 5 and execute.output_elements == 10
        with pytest.raises(ValueError, match="4 elements"):
            execute([1] * 4)
        with pytest.raises(ValueError, match="3 elements"):
            execute([1] * 5, np.empty(3, "i4"))
        world.barrier()
        return [output.tolist() for output in outputs]

    want = [[100 * n + i for i in [*range(5), *range(10, 15)]] for n in range(3)]
    assert run(2, body) == [want, want]


INPUTS = [
    # dtype of the program, input, what it is to the program: None is refused.
    ("i1", np.array([0.9, 1.5, 300.0]), None),
    ("i1", np.array([1, 2, 3]), None),
    ("i1", np.array([1, 2, 3], "u1"), None),
    ("i1", np.array([True, False, True]), [1, 0, 1]),
    ("i1", [1, -128, 127], [1, -128, 127]),
    ("i1", [1, 2, 128], None),
    ("i1", [1.0, 2.0, 3.0], None),
    ("u4", [0, 1, 2**32 - 1], [0, 1, 2**32 - 1]),
    ("u4", [0, -1, 2], None),
    ("u8", [2**63, 2**64 - 1, 2**63], [2**63, 2**64 - 1, 2**63]),
    ("u8", [0, 1, 2**64], None),
    ("i4", np.array([1, 2, 3], "u2"), [1, 2, 3]),
    ("i4", np.array([1, 2, 3], ">i4"), [1, 2, 3]),
    ("f4", [1, 2.5, 3], [1, 2.5, 3]),
    ("f4", np.array([1, 2.5, 3], "f2"), [1, 2.5, 3]),
    ("f4", np.array([1, 2.5, 3]), None),
    ("f4", np.array([1 + 2j] * 3), None),
    ("f4", [1 + 2j] * 3, None),
    ("f4", ["1", "2", "3"], None),
    ("f8", np.array([1, 2, 3]), [1, 2, 3]),
]


@pytest.mark.parametrize("case", range(len(INPUTS)))
def test_an_input_keeps_its_values(case):
    dtype, given, kept = INPUTS[case]

    def body(world):
        execute = ts.make_program("allreduce/ring", 2).executor(world, 3, dtype, "max")
        if kept is not None:
            return execute(given).tolist()
        with pytest.raises(ts.InvalidUse, match=f"the input has elements {np.asarray(given).dtype}, the program {np.dtype(dtype)}"):
            execute(given)
        return None

    assert ts.launch(2, body) == [kept] * 2


def test_executor_of_the_original(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(allreduce_by_switch(2))
    plan = ExecutionPlan(path, 0)
    assert plan.collective == "allreduce" and plan.name == "sn_allreduce_nvls_zero_copy_2r"

    def body(world):
        executor = Executor(world)
        out = []
        for op in (None, "max", "prod"):
            values = np.array([world.rank + 2, 5], np.float32)
            executor.execute(world.rank, values, values, DataType.float32, plan, op=op)
            out.append(values.tolist())
        with pytest.raises(ValueError, match="rank is [01], but this process is rank [01]"):
            executor.execute(1 - world.rank, values, values, DataType.float32, plan)
        return out

    assert ts.launch(2, body) == [[[5, 10], [3, 5], [6, 25]]] * 2


def test_the_call_of_the_original_runs(tmp_path):
    path = tmp_path / "plan.json"
    with CollectiveProgram("c", AllReduce(2, 1, True), 2, min_message_size=16, max_message_size=64) as program:
        channels = [MemoryChannel(1 - rank, rank) for rank in range(2)]
        inboxes = [Buffer(rank, 2) for rank in range(2)]
        for rank in range(2):
            values = Rank(rank).get_input_buffer()[:]
            channels[rank].signal(0, relaxed=True)
            channels[rank].wait(0, relaxed=True)
            channels[rank].put(inboxes[1 - rank][:], values, tb=0)
            channels[rank].signal(0)
            channels[rank].wait(0)
            Rank(rank).reduce(values, [inboxes[rank][:]], tb=0)
    program.lower().write(path)
    plan = ExecutionPlan(str(path), 0)
    assert (plan.min_message_size, plan.max_message_size) == (16, 64)

    def body(world):
        executor = Executor(world)
        values = np.arange(4, dtype=np.float32) + world.rank
        memory, size = values.ctypes.data, values.nbytes
        for _ in range(2):
            executor.execute(world.rank, memory, memory, size, size, DataType.float32, plan, 0, PacketType.LL8)
            executor.reset()
        executor.execute(
            rank=world.rank,
            send_buff=memory,
            recv_buff=memory,
            send_buff_size=size,
            recv_buff_size=size,
            data_type=DataType.float32,
            plan=plan,
            stream=0,
        )
        for elements in (2, 20):
            wrong = np.zeros(elements, np.float32)
            with pytest.raises(ValueError, match=f"for messages of 16 to 64 bytes, not {wrong.nbytes}"):
                executor.execute(world.rank, wrong, wrong, DataType.float32, plan)
        halves = np.array([0x3F80, 0x4000] * 4, np.uint16)  # 1 and 2
        executor.execute(world.rank, halves, halves, DataType.bfloat16, plan)
        assert halves.tolist() == [0x4000, 0x4080] * 4
        read_only = halves.copy()
        read_only.flags.writeable = False
        wrong = [(halves.tolist(), halves), (halves, None), (memory, halves)]
        wrong += [(halves[::2], halves), (halves, read_only)]
        for source, target in wrong:
            with pytest.raises(ValueError, match="send_buff|recv_buff"):
                executor.execute(world.rank, source, target, DataType.bfloat16, plan)
        return values.tolist()

    assert ts.launch(2, body) == [[4.0 * (2 * i + 1) for i in range(4)]] * 2


def test_a_plan_without_input_runs(tmp_path):
    with CollectiveProgram("no input", TestCollective(1, 0, 2), 1) as program:
        Rank(0).copy(Rank(0).get_output_buffer()[:1], Rank(0).get_output_buffer()[1:], tb=0)
    program.lower().write(tmp_path / "plan.json")
    plan = ExecutionPlan(tmp_path / "plan.json")

    def body(world):
        output = np.zeros(8, np.float32)
        Executor(world).execute(0, output[:0], output, DataType.float32, plan)
        return True

    assert ts.launch(1, body) == [True]


def gather_to_the_first_rank():
    """A plan of two ranks; the second one has no output."""
    with CollectiveProgram("collect", TestCollective(2, 1, 2), 2) as program:
        here, there = MemoryChannel(1, 0), MemoryChannel(0, 1)
        inputs, output = [Rank(rank).get_input_buffer() for rank in range(2)], Rank(0).get_output_buffer()
        Rank(0).copy(output[:1], inputs[0][:1], tb=0)
        here.signal(tb=0, relaxed=True)
        there.wait(tb=0, relaxed=True)
        there.put(output[1:2], inputs[1][:1], tb=0)
        there.signal(tb=0)
        here.wait(tb=0)
    plan = json.loads(program.lower().to_json())
    plan["gpus"][1]["output_chunks"] = 0
    return json.dumps(plan)


def test_ranks_bring_and_take_what_their_chunks_hold(tmp_path, run):
    path = tmp_path / "plan.json"
    path.write_text(gather_to_the_first_rank())
    plan = ExecutionPlan(path)

    def body(world):
        execute = plan.program.executor(world, 3, "i4")
        assert (execute.input_elements, execute.output_elements) == (3, 6 if world.rank == 0 else 0)
        mine = np.arange(3, dtype=np.int32) + 10 * world.rank
        out = np.zeros(execute.output_elements, np.int32)
        executor = Executor(world)
        for _ in range(2):
            executor.execute(world.rank, mine, out, DataType.int32, plan)
        return [execute(mine).tolist(), out.tolist()]

    assert run(2, body) == [[[0, 1, 2, 10, 11, 12]] * 2, [[]] * 2]


def test_wrong_programs_do_not_run(program):
    channel, back = MemoryChannel(1, 0), MemoryChannel(0, 1)
    for one in (channel, back):
        one.wait(0)
        one.signal(0)
    wrong = program.lower()

    def body(world):
        with pytest.raises(ts.InvalidUse, match="deadlock"):
            wrong.executor(world, 4)
        return True

    assert ts.launch(2, body) == [True, True]


def test_programs_are_files(tmp_path):
    program = ts.Program(ring_of_ports(4, 1, "ring"))
    program.write(tmp_path / "plan.json")
    again = ts.Program.read(tmp_path / "plan.json")
    assert again.to_json() == program.to_json() and "ring" in repr(again) and again.ranks == 4 and not again.in_place
    with pytest.raises(ts.BadText):
        ts.Program("{")
    with pytest.raises((ts.BadText, ts.BadFile)):
        ts.Program("{}")


def test_ready_programs_run(run):
    assert all(isinstance(one, ts.Algorithm) and one.summary for one in ts.algorithms())
    program = ts.make_program("allreduce/two_phase_packets", 3)
    found = program.verify()
    assert isinstance(found, ts.Verification) and found.knows_result and not found.needs_meeting and found.steps > 0

    def body(world):
        return program.executor(world, 7, "f8", "min")(np.arange(7) + world.rank).tolist()

    assert run(3, body) == [list(range(7))] * 3
    with pytest.raises(ts.InvalidUse, match="allreduce/ring"):
        ts.make_program("allreduce/star", 3)


def test_arguments_that_are_none_are_named(tmp_path):
    program = ts.make_program("allreduce/ring", 1)
    program.write(tmp_path / "plan.json")
    plan = ExecutionPlan(tmp_path / "plan.json")
    int32, int64 = f"whole number from {-2**31} to {2**31 - 1}, not ", f"whole number from {-2**63} to {2**63 - 1}, not "
    values = np.ones(2)

    def body(world):
        together, executor = ts.Collectives(world), Executor(world)
        address = values.ctypes.data
        refused = {
            lambda: together.all_reduce(values, None): "expected a text, not None",
            lambda: together.reduce(values, 0, 3): "expected a text, not 3",
            lambda: together.broadcast(values, 0.5): int32 + "0.5",
            lambda: together.broadcast(values, 2**31): int32 + f"{2**31}",
            lambda: together.use("allreduce/ring", 1.5): int64 + "1.5",
            lambda: together.algorithm_for("allreduce", 1.5): int64 + "1.5",
            lambda: together.algorithm_for("allreduce", -3): "allreduce: a message of -3 bytes is not possible",
            lambda: program.executor(world, 1.5): int64 + "1.5",
            lambda: program.executor(world, 2**63): int64 + f"{2**63}",
            lambda: program.executor(world, 1, op=3): "expected a text, not 3",
            lambda: program.verify(2**31): int32 + f"{2**31}",
            lambda: ts.Program(3): "expected a text, not 3",
            lambda: ts.make_program("allreduce/ring", 2.0): int32 + "2.0",
            lambda: ts.make_program("allreduce/ring", 2**31): int32 + f"{2**31}",
            lambda: ts.make_program("allreduce/ring", 2, in_place=3): "expected True or False, not 3",
            lambda: executor.execute(0, values, values, DataType.float64, program): "not a Program",
            lambda: executor.execute(0, 0, address, 16, 16, DataType.float64, plan): "null memory is given for 16 bytes of f64",
            lambda: executor.execute(0, address, 0, 16, 16, DataType.float64, plan): "null memory is given for 16 bytes of f64",
            lambda: executor.execute(0, address, -1, 16, 16, DataType.float64, plan): f"from 0 to {2**64 - 1}, not -1",
            lambda: executor.execute(0, address, address, 16, 1.5, DataType.float64, plan): int64 + "1.5",
        }
        for call, text in refused.items():
            with pytest.raises(ts.InvalidUse, match=text):
                call()
        executor.execute(0, 0, 0, 0, 0, DataType.float64, plan)
        executor.execute(np.int64(0), values, values, DataType.float64, plan)
        return program.executor(world, np.int32(4)).input_elements

    assert ts.launch(1, body) == [4]


def test_collectives_of_a_world(run):
    def body(world):
        together = ts.Collectives(world)
        n, me = world.size, world.rank
        values = np.arange(2 * n, dtype=np.float32).reshape(n, 2) + 100 * me
        for _ in range(2):  # directly, then by a program
            total = together.all_reduce(values)
            assert (total == sum(np.arange(2 * n).reshape(n, 2) + 100 * rank for rank in range(n))).all()
            assert (together.all_reduce(values, "max") == values + 100 * (n - 1 - me)).all()
            assert (together.reduce_scatter(values) == total[me : me + 1]).all()
            gathered = together.all_gather(values)
            assert gathered.shape == (n * n, 2) and (gathered[:n] == values - 100 * me).all()
            assert (together.all_to_all(values)[:, 0] == 2 * me + 100 * np.arange(n)).all()
            mine = values.copy()
            assert (together.broadcast(mine, root=n - 1) == values + 100 * (n - 1 - me)).all()
            reduced = together.reduce(values, root=1)
            assert (reduced == total).all() if me == 1 else reduced is None
            assert together.all_reduce(values, out=mine) is mine and (mine == total).all()
        together.use("allreduce/ring")
        assert together.algorithm_for("allreduce", 8) == "allreduce/ring" and "it was asked for" in together.explain()
        assert (together.all_reduce(values) == total).all()
        with pytest.raises(ValueError, match="equal parts"):
            together.all_to_all(np.zeros(n + 1))
        with pytest.raises(ValueError, match="makes float32"):
            together.all_reduce(values, out=np.empty(3))
        for scalar in (together.all_reduce(np.float32(me)), together.reduce(np.float32(me), root=0)):
            assert scalar is None or (scalar.shape == () and scalar == n * (n - 1) / 2)
        with pytest.raises(ValueError, match="contiguous"):
            together.broadcast(np.zeros((4, 4))[:, 1])
        with pytest.raises(ValueError, match="broadcast fills an array of NumPy's, not a list"):
            together.broadcast([1, 2, 3])
        with pytest.raises(ts.InvalidUse, match="allreduce/star"):
            together.use("allreduce/star")
        return True

    assert run(3, body) == [True] * 3


def test_a_program_says_what_mscclpp_would_not_run() -> None:
    assert ts.make_program("allreduce/ring", 3).mscclpp_objections() == []
    objections = ts.make_program("allreduce/packets", 20).mscclpp_objections()
    assert any("19 memory channels; at most 16" in one for one in objections)


def test_a_program_says_what_mscclpp_does_not_promise() -> None:
    with CollectiveProgram("one_way", TestCollective(2, 1, 1), 2) as one_way:
        rank, peer = Rank(0), Rank(1)
        there, back = MemoryChannel(1, 0), MemoryChannel(0, 1)
        scratch = Buffer(1, 1)
        there.put(scratch[0:1], rank.get_input_buffer()[0:1], tb=0)
        there.signal(tb=0)
        back.wait(tb=0)
        peer.copy(peer.get_output_buffer()[0:1], scratch[0:1], tb=0)
        rank.copy(rank.get_output_buffer()[0:1], rank.get_input_buffer()[0:1], tb=1)
    program = one_way.lower()
    objections = program.mscclpp_objections()
    assert any(one.startswith("ranks do not meet between launches there: ") for one in objections), objections


def test_keys_that_are_not_known_are_kept_and_named(tmp_path: pathlib.Path) -> None:
    text = ts.make_program("allreduce/ring", 2).to_json()
    path = tmp_path / "plan.json"
    path.write_text('{"colour": [1, 2], ' + text[1:])
    program = ts.Program.read(path)
    assert program.unknown_keys == ["colour"]
    assert '"colour":[1,2]' in program.to_json()
    with pytest.warns(UserWarning, match="the key colour is not known here"):
        ExecutionPlan(path)
