"""Atomic operations on elements of peers, by one thread: integers of 4 or 8 bytes; fetch, set and swap of floats, too."""

from . import _operations as one
from ._operations import forms

__all__ = [
    "atomic_add",
    "atomic_and",
    "atomic_compare_swap",
    "atomic_compare_swap_nbi",
    "atomic_fetch",
    "atomic_fetch_add",
    "atomic_fetch_add_nbi",
    "atomic_fetch_and",
    "atomic_fetch_and_nbi",
    "atomic_fetch_inc",
    "atomic_fetch_inc_nbi",
    "atomic_fetch_nbi",
    "atomic_fetch_or",
    "atomic_fetch_or_nbi",
    "atomic_fetch_xor",
    "atomic_fetch_xor_nbi",
    "atomic_inc",
    "atomic_or",
    "atomic_set",
    "atomic_swap",
    "atomic_swap_nbi",
    "atomic_xor",
]

atomic_fetch = forms(one.atomic_fetch)[0]
atomic_set = forms(one.atomic_set)[0]
atomic_swap = forms(one.atomic_swap)[0]
atomic_compare_swap = forms(one.atomic_compare_swap)[0]
atomic_inc = forms(one.atomic_inc)[0]
atomic_fetch_inc = forms(one.atomic_fetch_inc)[0]
atomic_add = forms(one.atomic_add)[0]
atomic_fetch_add = forms(one.atomic_fetch_add)[0]
atomic_and = forms(one.atomic_and)[0]
atomic_fetch_and = forms(one.atomic_fetch_and)[0]
atomic_or = forms(one.atomic_or)[0]
atomic_fetch_or = forms(one.atomic_fetch_or)[0]
atomic_xor = forms(one.atomic_xor)[0]
atomic_fetch_xor = forms(one.atomic_fetch_xor)[0]
atomic_fetch_nbi = forms(one.atomic_fetch_nbi)[0]
atomic_swap_nbi = forms(one.atomic_swap_nbi)[0]
atomic_compare_swap_nbi = forms(one.atomic_compare_swap_nbi)[0]
atomic_fetch_inc_nbi = forms(one.atomic_fetch_inc_nbi)[0]
atomic_fetch_add_nbi = forms(one.atomic_fetch_add_nbi)[0]
atomic_fetch_and_nbi = forms(one.atomic_fetch_and_nbi)[0]
atomic_fetch_or_nbi = forms(one.atomic_fetch_or_nbi)[0]
atomic_fetch_xor_nbi = forms(one.atomic_fetch_xor_nbi)[0]
