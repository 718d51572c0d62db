"""MSCCL++'s names over tranship: its channel language, its plans, and their execution on ranks of the CPU.

Scripts that were written for ``mscclpp.language`` run unchanged when this package stands in for it:

>>> import sys
>>> import tranship.mscclpp
>>> sys.modules["mscclpp"] = tranship.mscclpp
>>> from mscclpp.language.channel import MemoryChannel
>>> del sys.modules["mscclpp"]

What differs, on purpose: what the original accepts although it cannot be right is refused when it is written (negative
ranks, gets of different sizes, plain data where packets are sent), and what its passes got wrong is right. Plans can be
proved (:meth:`tranship.Program.verify`) before they run.
"""

from tranship.mscclpp import language
from tranship.mscclpp._executor import DataType, ExecutionPlan, Executor, PacketType

__all__ = ["DataType", "ExecutionPlan", "Executor", "PacketType", "language"]
