"""Collective operations of teams, by a thread, a warp or a block of each member."""

from . import _operations as one
from ._operations import forms

__all__ = [
    *(
        f"{name}{scope}"
        for name in (
            "alltoall",
            "barrier",
            "barrier_all",
            "broadcast",
            "fcollect",
            "reduce",
            "reducescatter",
            "sync",
            "sync_all",
        )
        for scope in ("", "_warp", "_block")
    )
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
