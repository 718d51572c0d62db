# Shows a pyop3 buffer that is assigned lazily: data moves when a stale copy is read, and at no other time.
# Prints the buffer and the state of its copies, after all assertions have held.
# Run: python examples/pyop3_story.py

import numpy as np

from tranship.pyop3 import HOST, ArrayBuffer, FakeGPU, offloading


def main() -> None:
    gpu = FakeGPU()
    x = ArrayBuffer(np.zeros(1000), name="x")
    assert x.state[HOST] == 0 and x.state[gpu] == -1  # no copy there, and asking makes none

    with offloading(gpu):  # moves nothing
        assert x.state[gpu] == -1
        x.data_rw[:] += 1  # copies, then writes on the device
        assert x.state[gpu] == 1 and x.state[HOST] == 0

    assert x.last_updated_device == gpu  # leaving moves nothing
    assert x.data_ro[0] == 1  # copies back
    assert x.state[HOST] == x.state[gpu] == 1

    with offloading(gpu):
        assert x.data_ro[0] == 1  # the copy was kept
    print(x)


if __name__ == "__main__":
    main()
