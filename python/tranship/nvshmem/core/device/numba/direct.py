"""Who this rank is."""

from ._operations import my_pe, n_pes, team_my_pe, team_n_pes

__all__ = ["my_pe", "n_pes", "team_my_pe", "team_n_pes"]
