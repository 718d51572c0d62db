"""Specifications of programs."""

from dataclasses import dataclass, field
from enum import Enum

from tranship.mscclpp._language.collectives import Collective
from tranship.mscclpp._language.programs import AlgoSpec
from tranship.mscclpp._language.types import ReplicationPolicy

__all__ = ["AlgoSpec", "Collective", "Enum", "ReplicationPolicy", "dataclass", "field"]
