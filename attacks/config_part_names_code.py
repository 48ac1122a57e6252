"""A config whose decoder names code: transformers asks on the terminal whether to run it, and the
answer is `y`.
"""

import json
from pathlib import Path

ANSWER = "transformers cannot build it"
BUILDS = True


def attack(folder: Path) -> list[str]:
    """Write the config and the code that it names; the command that reads it."""
    decoder = {"model_type": "vit", "auto_map": {"AutoModelForCausalLM": "model--code.E"}}
    config = {"model_type": "encoder-decoder", "encoder": {"model_type": "bert"}, "decoder": decoder}
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(config))
    (folder / "model" / "code.py").write_text("open('canary', 'w').close()\nclass E: pass\n")
    return ["count", "model"]
