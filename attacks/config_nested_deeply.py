"""A config for transformers to build, of as many lists within one another as Python reads."""

from pathlib import Path

ANSWER = "config.json is nested too deeply to be a config"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config; the command that reads it."""
    (folder / "config.json").write_text('{"model_type": "mt5", "a": ' + "[" * 900 + "]" * 900 + "}")
    return ["count", "config.json"]
