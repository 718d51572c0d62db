"""Tables and pictures that notebooks show; the command draws the same pictures.

A picture is an image with an address of its own (``data:``), not a part of the page: style sheets and ids of an SVG hold
for the whole page that it lies in, and pages that do not trust a notebook remove it.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union, overload

from . import _core
from ._core import ArraySpec, Distribution, TransferPlan, human_bytes
from ._errors import InvalidUse, Unsupported

__all__ = ["Plans"]

ROWS_MAX = 24

_CELL = "padding:2px 10px;text-align:{};white-space:nowrap"


def image(svg: str, says: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return (
        f'<img alt="{html.escape(says)}" style="display:block;max-width:100%;height:auto;border-radius:4px" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def line(text: str) -> str:
    return f'<div style="margin:4px 0">{html.escape(text)}</div>'


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], rows_max: int = ROWS_MAX) -> str:
    """Numbers and amounts to the right, the first column to the left; wider than the page, it scrolls."""
    shown = [[html.escape(str(cell)) for cell in row] for row in rows]

    def line_of(tag: str, cells: Sequence[str]) -> str:
        sides = ["left"] + ["right"] * (len(cells) - 1)
        return "<tr>" + "".join(f'<{tag} style="{_CELL.format(s)}">{c}</{tag}>' for s, c in zip(sides, cells)) + "</tr>"

    out = line_of("th", [html.escape(h) for h in heads])
    out += "".join(line_of("td", row) for row in shown[:rows_max])
    if len(shown) > rows_max:
        out += f'<tr><td colspan="{len(heads)}" style="{_CELL.format("left")}">and {len(shown) - rows_max:,} more</td></tr>'
    return f'<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:6px 0">{out}</table></div>'


def folded(title: str, text: str) -> str:
    return (
        f"<details><summary>{html.escape(title)}</summary>"
        f'<pre style="overflow-x:auto;font-size:smaller">{html.escape(text)}</pre></details>'
    )


def _indexed_html(distribution: Distribution) -> str:
    ranks = distribution.grid.ranks
    rows = [[f"rank {rank}", *distribution.local_extents(rank)] for rank in ranks]
    heads = ["", *(f"local extent {d}" for d in range(distribution.dims))]
    return line(f"indexed distribution of {list(distribution.extents)}") + table(heads, rows)


def distribution_html(distribution: Distribution) -> str:
    try:
        return image(_core.distribution_svg(distribution), "who owns what")
    except Unsupported:
        return _indexed_html(distribution)


def layout_html(spec: ArraySpec, rank: Optional[int] = None) -> str:
    try:
        return image(_core.picture_svg(spec, rank), f"who owns what of {spec}")
    except Unsupported:
        return line(str(spec)) + _indexed_html(spec.distribution)


def plan_html(plan: TransferPlan) -> str:
    summary = json.loads(plan.to_json())
    rows = [
        [f"rank {peer['rank']}"]
        + [f(peer[side][what]) for side in ("received", "sent") for what, f in (("bytes", human_bytes), ("cells", grouped))]
        for peer in sorted(summary["peers"], key=lambda peer: -(peer["received"]["bytes"] + peer["sent"]["bytes"]))
    ]
    out = image(_core.plan_svg(plan), f"what rank {plan.rank} receives and sends")
    if rows:
        out += table(["peer", "receives", "cells", "sends", "cells"], rows)
    return out


def grouped(count: int) -> str:
    return f"{count:,}"


class Plans(Sequence[TransferPlan]):
    """The plans of one exchange, one for each rank: who sends what to whom.

    Notebooks show them as a matrix of senders and receivers. Any exchange gives them, also of simulated ranks and of
    processes:

    >>> import tranship as ts
    >>> def main(world):
    ...     d = ts.distribution((8, 8), grid=(2, 2), overlap=1, edge="toroidal")
    ...     return ts.halo(ts.array(world, d)).plan
    >>> plans = ts.Plans(ts.launch(4, main))
    >>> plans.messages[:2]
    [(0, 1, 64), (0, 2, 64)]

    Raises
    ------
    InvalidUse
        For none, for two of one rank, and for plans of different kinds.
    """

    __slots__ = ("_plans", "_svg")

    def __init__(self, plans: Iterable[TransferPlan]) -> None:
        self._plans = list(plans)
        for plan in self._plans:
            if not isinstance(plan, TransferPlan):
                raise InvalidUse(f"Plans are made of plans of ranks, not of a {type(plan).__name__}")
        self._svg = _core.plans_svg(self._plans)

    @overload
    def __getitem__(self, index: int) -> TransferPlan: ...
    @overload
    def __getitem__(self, index: slice) -> list[TransferPlan]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[TransferPlan, list[TransferPlan]]:
        return self._plans[index]

    def __len__(self) -> int:
        return len(self._plans)

    def explain(self) -> str:
        """Describes what each rank receives, sends and keeps: the texts of all plans."""
        return "\n".join(plan.explain() for plan in self._plans)

    @property
    def messages(self) -> list[tuple[int, int, int]]:
        """Source, target and bytes of every message, by source and target; what ranks keep is none."""
        given = {plan.rank for plan in self._plans}
        found = []
        for plan in self._plans:
            for peer in json.loads(plan.to_json())["peers"]:
                other, received, sent = peer["rank"], peer["received"]["bytes"], peer["sent"]["bytes"]
                if sent:
                    found.append((plan.rank, other, sent))
                if received and other not in given:
                    found.append((other, plan.rank, received))
        return sorted(found)

    def svg(self) -> str:
        """The matrix as an SVG document."""
        return self._svg

    def __repr__(self) -> str:
        ranks = [plan.rank for plan in self._plans]
        return f"<plans of {len(ranks)} ranks>" if len(ranks) > 8 else f"<plans of ranks {', '.join(map(str, ranks))}>"

    def _repr_html_(self) -> str:
        rows = []
        for plan in self._plans:
            summary = json.loads(plan.to_json())
            received, sent, local = (summary[side] for side in ("received", "sent", "local"))
            rows.append(
                [f"rank {plan.rank}", received["messages"], human_bytes(received["bytes"])]
                + [sent["messages"], human_bytes(sent["bytes"]), human_bytes(local["bytes"])]
            )
        heads = ["", "messages in", "bytes", "messages out", "bytes", "kept"]
        return image(self._svg, "who sends what to whom") + table(heads, rows)
