"""The program that is being written."""

from tranship.mscclpp._language.programs import get_program, set_program

__all__ = ["get_program", "set_program"]
