"""Answers computed from ledgers: each reads no file format and returns a frozen dataclass."""
