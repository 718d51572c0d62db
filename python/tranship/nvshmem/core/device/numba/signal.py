"""Signals, waits and order, by a thread, a warp or a block."""

from . import _operations as one
from ._operations import forms

__all__ = [
    "fence",
    "fence_block",
    "fence_warp",
    "quiet",
    "quiet_block",
    "quiet_warp",
    "signal_fetch",
    "signal_fetch_block",
    "signal_fetch_warp",
    "signal_op",
    "signal_op_block",
    "signal_op_warp",
    "signal_wait",
    "signal_wait_block",
    "signal_wait_warp",
    "test",
    "test_all",
    "test_all_block",
    "test_all_warp",
    "test_any",
    "test_any_block",
    "test_any_warp",
    "test_block",
    "test_some",
    "test_some_block",
    "test_some_warp",
    "test_warp",
    "wait_until",
    "wait_until_all",
    "wait_until_all_block",
    "wait_until_all_warp",
    "wait_until_any",
    "wait_until_any_block",
    "wait_until_any_warp",
    "wait_until_block",
    "wait_until_some",
    "wait_until_some_block",
    "wait_until_some_warp",
    "wait_until_warp",
]

signal_op, signal_op_warp, signal_op_block = forms(one.signal_op)
signal_fetch, signal_fetch_warp, signal_fetch_block = forms(one.signal_fetch)
signal_wait, signal_wait_warp, signal_wait_block = forms(one.signal_wait)
wait_until, wait_until_warp, wait_until_block = forms(one.wait_until)
wait_until_all, wait_until_all_warp, wait_until_all_block = forms(one.wait_until_all)
wait_until_any, wait_until_any_warp, wait_until_any_block = forms(one.wait_until_any)
wait_until_some, wait_until_some_warp, wait_until_some_block = forms(one.wait_until_some)
test, test_warp, test_block = forms(one.test)
test_all, test_all_warp, test_all_block = forms(one.test_all)
test_any, test_any_warp, test_any_block = forms(one.test_any)
test_some, test_some_warp, test_some_block = forms(one.test_some)
fence, fence_warp, fence_block = forms(one.fence)
quiet, quiet_warp, quiet_block = forms(one.quiet)
