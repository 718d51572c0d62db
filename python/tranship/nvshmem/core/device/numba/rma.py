"""Transfers, by a thread, a warp or a block."""

from . import _operations as one
from ._operations import forms

__all__ = [
    *(f"{name}{scope}" for name in ("put", "get", "put_nbi", "get_nbi") for scope in ("", "_warp", "_block")),
    *(f"{name}{scope}" for name in ("put_signal", "put_signal_nbi") for scope in ("", "_warp", "_block")),
    "g",
    "p",
]

put, put_warp, put_block = forms(one.put)
put_nbi, put_nbi_warp, put_nbi_block = forms(one.put_nbi)
get, get_warp, get_block = forms(one.get)
get_nbi, get_nbi_warp, get_nbi_block = forms(one.get_nbi)
put_signal, put_signal_warp, put_signal_block = forms(one.put_signal)
put_signal_nbi, put_signal_nbi_warp, put_signal_nbi_block = forms(one.put_signal_nbi)
p = forms(one.p)[0]
g = forms(one.g)[0]
