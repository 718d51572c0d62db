"""Transfers, by a thread, a warp or a block."""

from . import _operations as one
from ._operations import forms

__all__ = [
    "g",
    "get",
    "get_block",
    "get_nbi",
    "get_nbi_block",
    "get_nbi_warp",
    "get_warp",
    "p",
    "put",
    "put_block",
    "put_nbi",
    "put_nbi_block",
    "put_nbi_warp",
    "put_signal",
    "put_signal_block",
    "put_signal_nbi",
    "put_signal_nbi_block",
    "put_signal_nbi_warp",
    "put_signal_warp",
    "put_warp",
]

put, put_warp, put_block = forms(one.put)
put_nbi, put_nbi_warp, put_nbi_block = forms(one.put_nbi)
get, get_warp, get_block = forms(one.get)
get_nbi, get_nbi_warp, get_nbi_block = forms(one.get_nbi)
put_signal, put_signal_warp, put_signal_block = forms(one.put_signal)
put_signal_nbi, put_signal_nbi_warp, put_signal_nbi_block = forms(one.put_signal_nbi)
p = forms(one.p)[0]
g = forms(one.g)[0]
