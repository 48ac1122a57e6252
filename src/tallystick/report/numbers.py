"""Format numbers: 124,439,808 exactly, 124.4M rounded, 497.8 MB."""

from math import log10

LONGEST = 1000  # bits; a longer integer may be too large for a float


def exact(number: int) -> str:
    """Return all digits with thousands separators; only the magnitude of a huge number.

    >>> exact(124439808), exact(10**4000)
    ('124,439,808', '10^4000')
    """
    return _power(number) if _is_huge(number) else f"{number:,}"


def rough(number: int) -> str:
    """Return about four digits and K, M, B or T.

    >>> rough(124439808), rough(671026404352), rough(768)
    ('124.4M', '671.0B', '768')
    """
    return _scaled(number, 1000, ("", "K", "M", "B", "T"))


def in_bytes(number: int) -> str:
    """Return bytes in decimal and binary units: at GB and GiB they differ by 7%.

    >>> in_bytes(497759232)
    '497.8 MB (474.7 MiB)'
    """
    if number < 1000:
        return f"{number} bytes"
    decimal = _scaled(number, 1000, (" bytes", " kB", " MB", " GB", " TB"))
    return f"{decimal} ({_scaled(number, 1024, (' bytes', ' KiB', ' MiB', ' GiB', ' TiB'))})"


def giga(number: int, *, binary: bool = False, places: int = 1) -> str:
    """Return bytes as a number of GB or GiB, always in that unit, so that numbers compare.

    >>> giga(1_080_708_562_944), giga(1_080_708_562_944, binary=True), giga(75_497_472, places=3)
    ('1,080.7', '1,006.5', '0.075')
    """
    unit = 2**30 if binary else 10**9
    return _power(number // unit) if _is_huge(number) else f"{number / unit:,.{places}f}"


def in_giga(number: int) -> str:
    """Return bytes in both GB and GiB.

    >>> in_giga(80_000_000_000), in_giga(573_256_704)
    ('80.0 GB (74.5 GiB)', '0.573 GB (0.534 GiB)')
    """
    places = 1 if number >= 10**10 else 3
    return f"{giga(number, places=places)} GB ({giga(number, binary=True, places=places)} GiB)"


def in_gigabytes(number: int) -> str:
    """Return bytes in GB alone.

    >>> in_gigabytes(80_000_000_000), in_gigabytes(573_256_704)
    ('80.0 GB', '0.573 GB')
    """
    return f"{giga(number, places=1 if number >= 10**10 else 3)} GB"


def in_flops(number: float) -> str:
    """Return FLOPs with about four digits and the unit.

    >>> in_flops(291_648_307_200), in_flops(3.14e24), in_flops(300)
    ('291.6 GFLOP', '3.1 YFLOP', '300 FLOP')
    """
    units = tuple(f" {prefix}FLOP" for prefix in ("", "k", "M", "G", "T", "P", "E", "Z", "Y"))
    return _scaled(number, 1000, units)


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal.

    >>> percent(0.310169)
    '31.0%'
    """
    return f"{share:.1%}"


def _is_huge(number: float) -> bool:
    return isinstance(number, int) and number.bit_length() > LONGEST


def _power(number: int) -> str:
    """Return the power of ten below an integer that is too large for a float."""
    return f"{'-' if number < 0 else ''}10^{int(log10(abs(number)))}"


def _scaled(number: float, step: int, units: tuple[str, ...]) -> str:
    if _is_huge(number):
        return f"{_power(int(number) // step ** (len(units) - 1))}{units[-1]}"
    value, place = float(number), 0
    while value >= step and place < len(units) - 1:
        value /= step
        place += 1
    return f"{value:.1f}{units[place]}" if place else f"{number:.0f}{units[0]}"
