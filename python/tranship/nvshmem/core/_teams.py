"""Teams: some of the ranks, by number."""

from __future__ import annotations

import itertools
from typing import Any, Optional, Union

from ..._amounts import amount
from ..._errors import InvalidUse, Unsupported
from ._ground import runtime
from ._transfers import whole
from ._types import TeamConfig, Teams

__all__ = [
    "TeamUniqueId",
    "get_team_unique_id",
    "team_destroy",
    "team_init",
    "team_my_pe",
    "team_n_pes",
    "team_split_2d",
    "team_split_strided",
    "team_translate_pe",
]


def team_my_pe(team: int) -> int:
    """This rank's place in a team."""
    return runtime().shmem.team_rank(whole(team, "a team"))


def team_n_pes(team: int) -> int:
    """The size of a team."""
    return runtime().shmem.team_size(whole(team, "a team"))


def team_split_strided(
    parent_team: int,
    start: int,
    stride: int,
    size: int,
    config: Optional[TeamConfig] = None,
    config_mask: int = 0,
    new_team_name: Optional[str] = None,
) -> Optional[int]:
    """Collective over the parent, those of its members that are not in the new team included: members start,
    start + stride, ... of it. None on ranks that are not among them.

    Raises
    ------
    InvalidUse
        For members that the parent does not have.
    Mismatch
        On all of them, when they name different members.
    TimeoutError
        When a member of the parent does not call it.
    """
    _require_free(new_team_name)
    number = runtime().shmem.split_strided(whole(parent_team, "a team"), start, stride, size)
    return _named(number, new_team_name)


def team_split_2d(
    parent_team: int,
    xrange: int,
    xaxis_config: Optional[TeamConfig] = None,
    xaxis_mask: int = 0,
    yaxis_config: Optional[TeamConfig] = None,
    yaxis_mask: int = 0,
    new_team_name: Optional[str] = None,
) -> tuple[Optional[int], Optional[int]]:
    """Collective over the parent, whose members are taken for rows of ``xrange``: the teams of this rank's row and
    column."""
    _require_free(new_team_name and new_team_name + "_X")
    _require_free(new_team_name and new_team_name + "_Y")
    x, y = runtime().shmem.split_2d(whole(parent_team, "a team"), xrange)
    return _named(x, new_team_name and new_team_name + "_X"), _named(y, new_team_name and new_team_name + "_Y")


def _require_free(name: Optional[str]) -> None:
    """Before the split, which all members of the parent make together."""
    if name is not None and name in Teams:
        raise InvalidUse(f"the name {name!r} belongs to team {Teams[name]}")


def _named(number: int, name: Optional[str]) -> Optional[int]:
    if number < 0:
        return None
    free = (f"TEAM_{number}" + "_" * i for i in itertools.count())
    Teams.add(name or next(one for one in free if one not in Teams), number)
    return number


def team_destroy(team: Union[int, str]) -> None:
    """Releases a team. Not collective."""
    if isinstance(team, str) and team not in Teams:
        raise KeyError(team)
    number = Teams[team] if isinstance(team, str) else whole(team, "a team")
    runtime().shmem.destroy(number)
    Teams.remove_by_value(number)


class TeamUniqueId:
    """An id that members of a team share before :func:`team_init`."""


def get_team_unique_id() -> TeamUniqueId:
    """Accepted; see :func:`team_init`."""
    return TeamUniqueId()


def team_init(
    team_config: Any, config_mask: int, npes: int, pe_idx_in_team: int, new_team_name: Optional[str] = None
) -> Optional[int]:
    """Collective over all ranks, each at its own place: a new team of all of them.

    NVSHMEM's takes the members alone. Here a team of some ranks is split off one that has them: all members of the
    parent call :func:`team_split_strided`, or :func:`team_split_2d`, and those that are not in the new team get None.

    Raises
    ------
    InvalidUse
        For more members than there are ranks, or none.
    Unsupported
        For some of the ranks, or in another order. Nothing has happened, and the error says what to call.
    """
    here = runtime()
    npes, place = whole(npes, "a number of members"), whole(pe_idx_in_team, "a place")
    if not 0 < npes <= here.size:
        raise InvalidUse(f"team_init of {amount(npes, 'member')}, in a world of {here.size} (rank {here.rank})")
    if npes < here.size:
        raise Unsupported(
            f"team_init of {amount(npes, 'member')}, called by rank {here.rank}: it makes teams of all {here.size} ranks. "
            f"For some of them, all {here.size} ranks call team_split_strided(Teams.TEAM_WORLD, start, stride, {npes}), or "
            "team_split_2d; ranks that are no members get None"
        )
    if place != here.rank:
        raise Unsupported(
            f"team_init with rank {here.rank} at place {place}: ranks keep their order in a team, and its place is "
            f"{here.rank}"
        )
    return team_split_strided(Teams.TEAM_WORLD, 0, 1, npes, None, 0, new_team_name)


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    """The place in one team of a member of another; -1 where it is not in there.

    Raises
    ------
    InvalidUse
        For a member that ``src_team`` does not have.
    """
    if src_pe < 0:
        raise InvalidUse(f"there is no member {src_pe}")
    return runtime().shmem.translate(
        whole(src_team, "a team"), whole(src_pe, "a member"), whole(dest_team, "a team")
    )
