"""Answers read ledgers. They know no file format, and each returns a frozen dataclass of plain data."""
