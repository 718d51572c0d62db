"""The name of a pass. Passes are arguments of :meth:`CollectiveProgram.lower`."""

from tranship.mscclpp._language.parts import BuffersAccess
from tranship.mscclpp.language.internal import operations as _operations
from tranship.mscclpp.language.internal.operations import *  # noqa: F403

__all__ = ["BuffersAccess"]
__all__ += _operations.__all__
