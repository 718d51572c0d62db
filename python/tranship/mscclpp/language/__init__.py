"""The channel language, under the module paths of MSCCL++."""

from tranship.mscclpp._language.programs import AlgoSpec
from tranship.mscclpp._language.types import ReplicationPolicy

__all__ = ["AlgoSpec", "ReplicationPolicy"]
