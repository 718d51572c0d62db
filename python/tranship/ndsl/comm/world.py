"""Ranks of a World."""
