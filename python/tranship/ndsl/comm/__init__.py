"""Ranks: communicators of them (:mod:`~tranship.ndsl.comm.comm_abc`), what lies between them
(:mod:`~tranship.ndsl.comm.partitioner`), and what they exchange (:mod:`~tranship.ndsl.comm.communicator`)."""

from .caching_comm import (
    CachingCommData,
    CachingCommReader,
    CachingCommWriter,
    CachingRequestReader,
    CachingRequestWriter,
)
from .comm_abc import Comm, ReductionOperator, Request

__all__ = [
    "CachingCommData",
    "CachingCommReader",
    "CachingCommWriter",
    "CachingRequestReader",
    "CachingRequestWriter",
    "Comm",
    "ReductionOperator",
    "Request",
]
