"""Fields on this rank."""

from .metadata import QuantityHaloSpec, QuantityMetadata
from .quantity import Quantity

__all__ = ["Quantity", "QuantityHaloSpec", "QuantityMetadata"]
