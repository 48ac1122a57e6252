"""How fast each native type is counted from a config.json, as a whole process, beside transformers
on the meta device.

    python benchmarks/every_type.py         # a quarter of an hour
    python benchmarks/every_type.py --only mamba gpt2

The config says its type alone, so that both count the default. Of each type the fastest of three
processes of tallystick is taken, and one of the meta device: what another process takes away only
ever adds. The slowest of all types are shown.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from speed import OURS, TARGET_CONFIG_SECONDS, TARGET_RATIO, Contender, met, tallystick

RUNS = 3
SHOWN = 8
LIST = """
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as names
from tallystick import architectures
print(*filter(architectures.find, names))
"""


class Timed(NamedTuple):
    """What both took of one type."""

    name: str
    work: float  # seconds of the processor
    ratio: float | None  # how many times longer the meta device takes; None where it builds no default


def timed(name: str, folder: Path) -> Timed | None:
    """Both on the default of one type; None where neither takes it, since such a config has to say
    more.
    """
    home = folder / name
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"model_type": name}))
    ours = Contender(OURS, [*tallystick(), "count", str(home / "config.json"), "--format", "json"])
    meta = Contender("meta", [sys.executable, str(Path(__file__).with_name("peers.py")), "meta", str(home)])
    for _ in range(RUNS):
        ours.run(folder)
    meta.run(folder)
    if ours.error and meta.error:
        return None
    if ours.error:
        raise SystemExit(f"{name}: {ours.error}")
    if meta.count is not None and meta.count != ours.count:
        raise SystemExit(f"{name}: {ours.count:,}, and the meta device has {meta.count:,}")
    return Timed(name, min(ours.processor), None if meta.error else meta.seconds[0] / min(ours.seconds))


def main() -> None:
    """The slowest types, and those that the meta device is nearest to."""
    parser = argparse.ArgumentParser(description="How fast each native type is counted, beside the meta device.")
    parser.add_argument("--only", nargs="+", metavar="TYPE", help="these types alone")
    with tempfile.TemporaryDirectory() as folder:
        listing = Contender("list", [sys.executable, "-c", LIST])
        listing.run(Path(folder))
        names = parser.parse_args().only or listing.output.split()
        results = [one for name in names if (one := timed(name, Path(folder)))]
    compared = sorted((one for one in results if one.ratio), key=lambda one: one.ratio or 0)
    print(
        f"{len(names)} types, {len(results)} of which have a default; {len(compared)} of them also on the meta device, with the same count"
    )
    print(f"\n{'most work':24}{'cpu s':>9}")
    for one in sorted(results, key=lambda one: -one.work)[:SHOWN]:
        print(f"{one.name:24}{one.work:9.3f}")
    print(f"\n{'nearest to the peer':24}{'x tallystick':>14}")
    for one in compared[:SHOWN]:
        print(f"{one.name:24}{one.ratio:13.1f}x")
    slowest, nearest = max(one.work for one in results), min((one.ratio or 0 for one in compared), default=0)
    print(f"\n{met(slowest < TARGET_CONFIG_SECONDS)}: at most {slowest:.3f} s of work, target {TARGET_CONFIG_SECONDS}")
    print(
        f"{met(nearest >= TARGET_RATIO)}: at least {nearest:.1f}x faster than the meta device, target {TARGET_RATIO}x"
    )


if __name__ == "__main__":
    main()
