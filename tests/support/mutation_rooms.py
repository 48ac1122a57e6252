"""Which tests hold each room of our code against a break, cheap ones first, and a draw of breaks
over all rooms.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from repository import ROOT, TESTS

SOURCE = ROOT / "src" / "tallystick"
SLOW = ("test_how_ties_break", "test_explore_page")  # files of tests whose names begin so
FAR = (True, True)
Drawn = TypeVar("Drawn")


class Room(NamedTuple):
    """Folders of the source that count as one, and what tests them."""

    first: str  # files of tests/, without test_ and .py, * for any name; run on every break
    wider: str  # run on what those let pass
    folders: tuple[str, ...] = ()  # where they are not of the room's name
    apart: tuple[str, ...] = ()  # folders inside it that are rooms of their own
    by_type: bool = False  # a file is a model type: only the tests named after it are run first

    def tests(self, path: Path) -> tuple[list[str], list[str]]:
        """The arguments of pytest for a break of a file, and for one that passes these.

        Of the first tests only those that name the module, where there are any.
        """
        first, wider = arguments(self.first, path), arguments(self.wider, path)
        if self.by_type:
            return [*first, "-k", path.stem], [*wider, *first]
        near = [test for test in first if nearness(test, path) < FAR] or first
        more = [
            str(test)
            for test in sorted(TESTS.rglob("test_*.py"))
            if not test.stem.startswith(SLOW) and imports(test, path)
        ]
        return near, [test for test in dict.fromkeys([*more, *first, *wider]) if test not in near]


# Presets are left out: constants of published models. The wider tests are also all that import the
# module, but for SLOW.
ROOMS = {
    "core": Room(
        "core/nodes core/ledger core/budget core/ledger_copies core/mtp sources/rollup sources/other_configs",
        "answers/formula answers/parts answers/memory answers/activations answers/compute answers/compare answers/compare_modules "
        "answers/compare_command architectures/architectures architectures/options architectures/nested "
        "architectures/bad_values runtimes/cache cli/cli sources/repair sources/module",
    ),
    "derivations": Room(
        "derivations/derivation answers/check/check answers/check/check_copied answers/check/check_doubt",
        "answers/check/* answers/reconcile answers/conventions answers/claimed_count web/explore core/budget",
    ),
    "formats": Room(
        "formats/shards formats/storage_overlap formats/gguf formats/npz formats/torch_kinds formats/formats "
        "formats/safetensors formats/safetensors_changed formats/safetensors_cost formats/distributed "
        "formats/llama2c formats/strange_classes formats/torch_files",
        "formats/* files/remote files/saving sources/folders "
        "sources/missing_weights sources/peft_adapters core/budget files/allowance sources/checkpoint "
        "sources/checkpoint_ties sources/checkpoint_config sources/shared_memory sources/repair cli/bad_input",
    ),
    "files": Room(
        "files/allowance files/hosts files/leftovers files/saving files/remote",
        "files/* cli/bad_input cli/endings formats/formats training/resume training/resume_tensors "
        "training/resume_data training/training_data sources/locate sources/missing_weights",
    ),
    "runtimes": Room(
        "runtimes/cache runtimes/runtimes answers/activations",
        "runtimes/* answers/serve* answers/fit_engine answers/speed answers/gguf* answers/memory answers/compute "
        "architectures/every_type web/explore",
    ),
    "architectures": Room(
        "architectures/architectures architectures/wholes architectures/unpackaged",
        "architectures/* models/teaching "
        "runtimes/cache answers/activations answers/compute answers/memory sources/checkpoint "
        "sources/checkpoint_ties sources/checkpoint_config sources/text_model",
        apart=("kit",),
        by_type=True,
    ),
    "kit": Room(
        "architectures/architectures architectures/wholes architectures/bad_values architectures/every_type",
        "architectures/* runtimes/cache answers/activations answers/compute answers/memory",
        folders=("architectures/kit",),
    ),
    "sources": Room(
        "sources/locate sources/names_shown sources/fix_links sources/found_roles sources/rollup "
        "sources/other_configs sources/text_model sources/nothing_dropped sources/folders sources/missing_weights "
        "sources/peft_adapters sources/checkpoint sources/checkpoint_ties sources/checkpoint_config sources/packed "
        "sources/quantized_configs sources/quantized_modules sources/quantized_unknown sources/module "
        "sources/shared_memory sources/values sources/repair sources/vary sources/on_meta",
        "sources/* architectures/classes architectures/nested "
        "architectures/unpackaged formats/formats formats/gguf cli/bad_input cli/bad_ties cli/cli answers/ties "
        "answers/ties_unsaid live/live "
        "live/retie live/check_optimizer live/how_ties_break_on_disk web/page_files",
    ),
    "answers": Room(
        "answers/formula answers/fit answers/devices answers/sweep answers/align answers/groups answers/compare "
        "answers/compare_modules answers/compare_command answers/compare_layouts answers/reconcile "
        "answers/conventions answers/claimed_count answers/remedies answers/parts answers/ties answers/compute "
        "answers/activations answers/memory answers/check/check answers/sharding",
        "answers/* answers/check/* cli/cli cli/bad_input cli/bad_ties runtimes/runtimes runtimes/cache "
        "architectures/presets architectures/preset_bytes architectures/preset_keys architectures/active_parameters "
        "architectures/every_type derivations/derivation web/explore docs/json_page docs/outputs",
    ),
    "report": Room(
        "report/terminal_width report/pictures cli/cli web/explore",
        "report/* core/ledger cli/text_commands cli/train_cli answers/formula answers/compare answers/compare_modules "
        "answers/compare_command answers/sweep answers/check/check answers/reconcile training/experiment "
        "live/survive live/survive_source live/probe docs/outputs docs/docs",
    ),
    "cli": Room("cli/cli cli/text_commands cli/train_cli cli/bad_input", "cli/* docs/outputs docs/docs web/explore reach"),
    "live": Room(
        "live/live live/retie live/check_optimizer live/callbacks live/survive live/survive_source live/probe",
        "live/ranks sources/module answers/ties cli/bad_ties models/surgery",
    ),
    "models": Room(
        "models/tokens models/loss models/generation models/surgery models/text_model models/teaching "
        "models/evaluate models/decoder models/decoder_linear models/decoder_ties models/weights",
        "models/decoder_compiled cli/text_commands cli/train_cli training/training",
    ),
    "training": Room(
        "training/training_config training/training_data training/training_log training/optimizer_groups "
        "training/training training/resume training/resume_tensors training/resume_data training/run_lock "
        "training/clock_and_signals",
        "training/experiment training/full_disk training/training_ranks cli/train_cli cli/bad_input",
    ),
    "web": Room("web/explore web/explore_server web/strip", "web/* docs/json_page cli/endings"),
    "isolation": Room("isolation/sealed", "sources/vary_elsewhere cli/bad_input"),
}  # fmt: skip


def files(name: str) -> list[Path]:
    """The files of a room."""
    room = ROOMS[name]
    found = (path for folder in room.folders or (name,) for path in sorted((SOURCE / folder).rglob("*.py")))
    return [path for path in found if not set(room.apart) & set(path.relative_to(SOURCE).parts)]


def arguments(names: str, path: Path) -> list[str]:
    """Files of tests, those first that are named after the module, then those that name it."""
    found = (TESTS.glob(f"{Path(name).parent}/test_{Path(name).name}.py") for name in names.split())
    paths = dict.fromkeys(test for tests in found for test in sorted(tests))
    return [str(test) for test in sorted(paths, key=lambda test: nearness(test, path))]


def nearness(test: Path | str, path: Path) -> tuple[bool, bool]:
    """Whether a file of tests is named otherwise than a module, and does not import it."""
    return path.stem not in Path(test).stem, not imports(Path(test), path)


def imports(test: Path, path: Path) -> bool:
    """Whether a test names a module."""
    package, module = (".".join(of.relative_to(SOURCE.parent).parts) for of in (path.parent, path.with_suffix("")))
    return bool(re.search(rf"{module}\b|from {package} import .*\b{path.stem}\b", test.read_text(encoding="utf-8")))


def draw(
    names: Sequence[str], count: int, seed: int, breaks: Callable[[Path], Sequence[Drawn]]
) -> dict[str, list[Drawn]]:
    """Breaks by room, as many as its share of all lines; another room changes nothing of a draw."""
    lines = {name: sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files(name)) for name in ROOMS}
    quotas = {name: count * size / sum(lines.values()) for name, size in lines.items()}
    shares = {name: int(quota) for name, quota in quotas.items()}
    for name in sorted(quotas, key=lambda name: shares[name] - quotas[name])[: count - sum(shares.values())]:
        shares[name] += 1
    return {
        name: random.Random(f"{seed} {name}").sample(
            [one for path in files(name) for one in breaks(path)], shares[name]
        )
        for name in names
    }
