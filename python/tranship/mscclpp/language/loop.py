"""Loops."""

from tranship.mscclpp._language.programs import LoopIterationContext, get_program

__all__ = ["LoopIterationContext", "get_program"]
