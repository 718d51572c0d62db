"""Collective operations of teams, by a thread, a warp or a block of each member."""

from . import _operations as one
from ._operations import forms

__all__ = [
    "alltoall",
    "alltoall_block",
    "alltoall_warp",
    "barrier",
    "barrier_all",
    "barrier_all_block",
    "barrier_all_warp",
    "barrier_block",
    "barrier_warp",
    "broadcast",
    "broadcast_block",
    "broadcast_warp",
    "fcollect",
    "fcollect_block",
    "fcollect_warp",
    "reduce",
    "reduce_block",
    "reduce_warp",
    "reducescatter",
    "reducescatter_block",
    "reducescatter_warp",
    "sync",
    "sync_all",
    "sync_all_block",
    "sync_all_warp",
    "sync_block",
    "sync_warp",
]

sync, sync_warp, sync_block = forms(one.sync)
sync_all, sync_all_warp, sync_all_block = forms(one.sync_all)
barrier, barrier_warp, barrier_block = forms(one.barrier)
barrier_all, barrier_all_warp, barrier_all_block = forms(one.barrier_all)
reduce, reduce_warp, reduce_block = forms(one.reduce)
reducescatter, reducescatter_warp, reducescatter_block = forms(one.reducescatter)
fcollect, fcollect_warp, fcollect_block = forms(one.fcollect)
broadcast, broadcast_warp, broadcast_block = forms(one.broadcast)
alltoall, alltoall_warp, alltoall_block = forms(one.alltoall)
