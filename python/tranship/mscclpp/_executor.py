"""Plans as MSCCL++'s Python package executes them, on the ranks of a world."""

from __future__ import annotations

import enum
import os
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import NDArray

from tranship import World
from tranship._errors import InvalidUse
from tranship._programs import Program, ProgramExecutor

__all__ = ["DataType", "ExecutionPlan", "Executor", "PacketType"]


class DataType(enum.Enum):
    """Of the elements. Those of MSCCL++, and the others that a program can combine."""

    int8 = "int8"
    uint8 = "uint8"
    int16 = "int16"
    uint16 = "uint16"
    int32 = "int32"
    uint32 = "uint32"
    int64 = "int64"
    uint64 = "uint64"
    float16 = "float16"
    bfloat16 = "bfloat16"
    float32 = "float32"
    float64 = "float64"


class PacketType(enum.Enum):
    """Of data that carries its own flags. Programs name theirs; ranks of the CPU use 8 bytes in both."""

    LL8 = 8
    LL16 = 16


class ExecutionPlan:
    """A plan file.

    Parameters
    ----------
    plan_path : path
    rank : int, optional
        Accepted for MSCCL++'s sake: the plan has all ranks.
    """

    def __init__(self, plan_path: Union[str, os.PathLike[str]], rank: Optional[int] = None) -> None:
        self.program = Program.read(plan_path)
        self.rank = rank

    @property
    def name(self) -> str:
        """Of the plan."""
        return self.program.name

    @property
    def collective(self) -> str:
        """What the plan promises."""
        return self.program.collective

    def __repr__(self) -> str:
        return f"<ExecutionPlan {self.program!r}>"


class Executor:
    """Executes plans on the ranks of a world. What a plan needs is made at its first use and kept.

    Parameters
    ----------
    world : World
        Whose ranks execute plans together; MSCCL++ has a communicator here.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._ready: dict[tuple[int, int, DataType, Optional[str]], tuple[ExecutionPlan, ProgramExecutor]] = {}

    def execute(
        self,
        rank: int,
        send_buff: NDArray[Any],
        recv_buff: NDArray[Any],
        data_type: DataType,
        plan: ExecutionPlan,
        stream: object = None,
        packet_type: PacketType = PacketType.LL8,
        *,
        op: Optional[str] = None,
    ) -> None:
        """Collective: one launch of the plan. It is complete on return.

        Parameters
        ----------
        rank : int
            Of the caller.
        send_buff, recv_buff : ndarray
            Input and output, contiguous, seen as elements of `data_type`; they may be the same.
        data_type : DataType
        plan : ExecutionPlan
        stream : object
            Orders nothing here.
        packet_type : PacketType
        op : {"sum", "prod", "min", "max"}, optional
            Instead of the reduction that the plan names.

        Raises
        ------
        InvalidUse
            For the rank of another, a plan that is not right, and buffers that do not fit it.
        """
        if rank != self._world.rank:
            raise InvalidUse(f"rank {rank} executes as rank {self._world.rank}")
        PacketType(packet_type)
        dtype = _dtype_of(DataType(data_type))
        for name, buffer in (("send_buff", send_buff), ("recv_buff", recv_buff)):
            if not buffer.flags.c_contiguous or buffer.nbytes % dtype.itemsize != 0:
                raise InvalidUse(f"{name} has {buffer.nbytes} bytes, or strides: needs whole elements of {dtype} in a row")
        source = send_buff.reshape(-1).view(dtype)
        target = recv_buff.reshape(-1).view(dtype)
        elements = plan.program._core.elements_of(rank, source.size, target.size)
        key = (id(plan), elements, data_type, op)
        if key not in self._ready:
            self._ready[key] = (plan, plan.program.executor(self._world, elements, dtype, op))
        self._ready[key][1](source, target)


def _dtype_of(data_type: DataType) -> np.dtype[Any]:
    scalar: Any = data_type.value
    if data_type is DataType.bfloat16:
        try:
            import ml_dtypes
        except ImportError:
            raise InvalidUse("bfloat16 needs ml_dtypes, which is not installed") from None
        scalar = ml_dtypes.bfloat16
    out: np.dtype[Any] = np.dtype(scalar)
    return out
