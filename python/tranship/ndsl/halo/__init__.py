"""Halo exchange: packing (:mod:`~tranship.ndsl.halo.data_transformer`) and updating
(:mod:`~tranship.ndsl.halo.updater`)."""

from .data_transformer import HaloDataTransformer, HaloDataTransformerCPU, HaloDataTransformerGPU, HaloExchangeSpec

__all__ = ["HaloDataTransformer", "HaloDataTransformerCPU", "HaloDataTransformerGPU", "HaloExchangeSpec"]
