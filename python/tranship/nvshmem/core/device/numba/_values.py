"""The rule for values that become elements of an array, for kernels that are simulated and for those that
Numba has compiled."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ....._errors import InvalidUse

# By NumPy's kind of the element, the kinds of values. Integers must fit; floats are rounded.
_KINDS = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "c": "iufc"}
_NAMES = {"b": "a bool", "iu": "an integer", "iuf": "an integer or a float", "iufc": "a number"}

DOES_NOT_FIT = "the value does not fit in an element of the array"


def refusal(element: np.dtype[Any], kind: str, text: str) -> Optional[str]:
    """Why a value of a kind, which `text` names, is no element; nothing where it may be one."""
    if element.kind not in _KINDS:
        return f"elements that are numbers are needed, not {element}"
    kinds = _KINDS[element.kind]
    return None if kind and kind in kinds else f"an element of {element} takes {_NAMES[kinds]}, not {text}"


def as_element(value: Any, element: np.dtype[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """The value, or the first one of an array, as an array of one element."""
    given = np.asarray(value).reshape(-1)[:1]
    if not given.size:
        raise InvalidUse("the array has 0 elements: needs 1 or more")
    if (why := refusal(element, given.dtype.kind, str(given.dtype))) is not None:
        raise InvalidUse(why)
    with np.errstate(over="ignore"):
        out = given.astype(element)
    if element.kind in "iu" and int(out[0]) != int(given[0]):
        raise InvalidUse(DOES_NOT_FIT)
    return out
