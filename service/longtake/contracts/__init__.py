"""Contracts: the shapes that cross a boundary (floor 0). Nothing here decides or does I/O."""
