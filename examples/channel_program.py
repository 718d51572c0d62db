# Shows an all-gather of channel operations: written, proved, refused when signals are missing, and run on 3 ranks.
# Prints the proof, the missing order, what each rank has gathered, and the names of the ready-made algorithms.
# Run: python examples/channel_program.py

import numpy as np

import tranship as ts
from tranship.mscclpp.language.channel import MemoryChannel
from tranship.mscclpp.language.collectives import AllGather
from tranship.mscclpp.language.internal.types import SyncType
from tranship.mscclpp.language.program import CollectiveProgram
from tranship.mscclpp.language.rank import Rank

RANKS = 3


def all_gather(begins_together: bool = True) -> ts.Program:
    """Rank r sends its part to all others, and a signal tells each of them that the part has arrived."""
    with CollectiveProgram("gather", AllGather(RANKS, 1, False), RANKS) as program:
        pairs = [(rank, peer) for rank in range(RANKS) for peer in range(RANKS) if peer != rank]
        channels = {(rank, peer): MemoryChannel(peer, rank) for rank, peer in pairs}
        for rank in range(RANKS):
            to_all = [(peer, channels[rank, peer]) for peer in range(RANKS) if peer != rank]
            mine = slice(rank, rank + 1)
            source, target = Rank(rank).get_input_buffer()[:], Rank(rank).get_output_buffer()[mine]
            if begins_together:  # a rank writes to a peer only after the peer has begun this launch
                for _, channel in to_all:
                    channel.signal(tb=0, relaxed=True)
                for _, channel in to_all:
                    channel.wait(tb=0, relaxed=True)
            for peer, channel in to_all:
                channel.put(Rank(peer).get_output_buffer()[mine], source, tb=0)
            Rank(rank).copy(target, source, tb=0)
            for _, channel in to_all:
                channel.signal(tb=0, data_sync=SyncType.before)
            for _, channel in to_all:
                channel.wait(tb=0)
    return program.lower()


def main(world: ts.World) -> list[int]:
    execute = all_gather().executor(world, elements=2, dtype=np.int32)
    return [int(value) for value in execute(np.array([10, 11], np.int32) + 100 * world.rank)]


if __name__ == "__main__":
    print(all_gather(), all_gather().verify(), sep="\n")
    careless = all_gather(begins_together=False).verify()
    print("Without the first signals, all ranks must meet between two launches:", careless.why_meeting[0].text)
    for rank, output in enumerate(ts.launch(RANKS, main)):
        print(f"rank {rank}:", *output)
    print(*(one.name for one in ts.algorithms()))
