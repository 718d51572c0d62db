"""Loops."""

from tranship.mscclpp._language.parts import PipelineOperation
from tranship.mscclpp._language.programs import LoopIterationContext, get_program, set_program

__all__ = ["LoopIterationContext", "PipelineOperation", "get_program", "set_program"]
