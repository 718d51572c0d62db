"""Plans as MSCCL++'s Python package executes them, on the ranks of a world."""

from __future__ import annotations

import enum
import os
import warnings
from numbers import Integral
from typing import Any, Optional, Union, overload

import numpy as np
from numpy.typing import NDArray

from tranship import World, _core
from tranship._errors import InvalidUse
from tranship._elements import element_type
from tranship._programs import Program

__all__ = ["DataType", "ExecutionPlan", "Executor", "PacketType"]


class DataType(enum.Enum):
    """The type of the elements: the types of MSCCL++, and the others that a program can combine."""

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

    @property
    def _element(self) -> str:
        return "bf16" if self is DataType.bfloat16 else element_type(self.value)


class PacketType(enum.Enum):
    """The format of data that carries its own flags. Programs name theirs; ranks of the CPU use 8 bytes in both."""

    LL8 = 8
    LL16 = 16


class ExecutionPlan:
    """A plan file.

    Parameters
    ----------
    plan_path : path
    rank : int, optional
        Accepted for MSCCL++'s sake: the plan has all ranks.

    Warns
    -----
    UserWarning
        For a plan with keys that are not known here: what they ask for is left out.
    """

    def __init__(self, plan_path: Union[str, os.PathLike[str]], rank: Optional[int] = None) -> None:
        self.program = Program.read(plan_path)
        if unknown := self.program.unknown_keys:
            more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            warnings.warn(
                f"{os.fspath(plan_path)}: the key {unknown[0]} is not known here, and what it asks for is left out{more}",
                stacklevel=2,
            )
        self.rank = rank
        self._core = _core.ExecutionPlan(self.program._core)

    @property
    def name(self) -> str:
        """The name of the plan."""
        return self.program.name

    @property
    def collective(self) -> str:
        """The collective that the plan promises."""
        return self.program.collective

    @property
    def min_message_size(self) -> int:
        """The fewest bytes that it takes: of the input, and of an allgather the output."""
        return self.program._core.message_bytes_min

    @property
    def max_message_size(self) -> int:
        """The most bytes that it takes."""
        return self.program._core.message_bytes_max

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
        self._core = _core.make_plan_executor(world._core)

    @overload
    def execute(
        self,
        rank: int,
        send_buff: NDArray[Any],
        recv_buff: NDArray[Any],
        data_type: DataType,
        plan: ExecutionPlan,
        stream: object = None,
        packet_type: PacketType = PacketType.LL16,
        *,
        op: Optional[str] = None,
    ) -> None: ...
    @overload
    def execute(
        self,
        rank: int,
        send_buff: int,
        recv_buff: int,
        send_buff_size: int,
        recv_buff_size: int,
        data_type: DataType,
        plan: ExecutionPlan,
        stream: object = None,
        packet_type: PacketType = PacketType.LL16,
        *,
        op: Optional[str] = None,
    ) -> None: ...
    def execute(self, rank: int, send_buff: Any, recv_buff: Any, *args: Any, **named: Any) -> None:
        """Collective: one launch of the plan. It is complete on return.

        Parameters
        ----------
        rank : int
            Of the caller.
        send_buff, recv_buff : ndarray or int
            Input and output: contiguous arrays of any type, or addresses. They may be the same.
        send_buff_size, recv_buff_size : int
            Bytes, where addresses are given, and only there.
        data_type : DataType
            What the bytes are taken for.
        plan : ExecutionPlan
        stream : object
            Orders nothing here.
        packet_type : PacketType
        op : {"sum", "prod", "min", "max"}, optional
            Instead of the reduction that the plan names.

        Raises
        ------
        InvalidUse
            For the rank of another, a plan that is not right, a message that is shorter or longer than those of the
            plan, and buffers that do not fit it.
        """
        if isinstance(send_buff, Integral) and isinstance(recv_buff, Integral):
            self._execute(rank, int(send_buff), int(recv_buff), *args, **named)
        else:
            source, target = _bytes_of("send_buff", send_buff), _bytes_of("recv_buff", recv_buff)
            if not target.flags.writeable:
                raise InvalidUse("recv_buff is read-only")
            self._execute(
                rank, source.ctypes.data, target.ctypes.data, source.nbytes, target.nbytes, *args, **named
            )

    def _execute(
        self,
        rank: int,
        send_buff: int,
        recv_buff: int,
        send_buff_size: int,
        recv_buff_size: int,
        data_type: DataType,
        plan: ExecutionPlan,
        stream: object = None,
        packet_type: PacketType = PacketType.LL16,
        *,
        op: Optional[str] = None,
    ) -> None:
        if rank != self._world.rank:
            raise InvalidUse(f"rank is {rank}, but this process is rank {self._world.rank}")
        PacketType(packet_type)
        if not isinstance(plan, ExecutionPlan):
            raise InvalidUse(f"an ExecutionPlan is executed, not a {type(plan).__name__}")
        self._core.execute(
            plan._core,
            (send_buff, send_buff_size),
            (recv_buff, recv_buff_size),
            DataType(data_type)._element,
            op,
        )

    def reset(self) -> None:
        """Collective: releases what was made for earlier launches. Launches that follow make anew what they need."""
        self._core.reset()


def _bytes_of(name: str, buffer: object) -> NDArray[Any]:
    if not isinstance(buffer, np.ndarray):
        raise InvalidUse(f"{name} is of type {type(buffer).__name__}; both buffers are arrays, or both are addresses")
    if not buffer.flags.c_contiguous:
        raise InvalidUse(f"{name} has strides; executors take contiguous arrays")
    return buffer
