"""The plan as text."""

from tranship.mscclpp._language.programs import JSON, get_program

__all__ = ["JSON", "get_program"]
