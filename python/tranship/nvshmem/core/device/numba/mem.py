"""Memory of peers as arrays, to load and store."""

from ._operations import get_multicast_array, get_peer_array

__all__ = ["get_multicast_array", "get_peer_array"]
