"""Read the config of a model key by key.

Integers come back as `Dim`, so every shape computed from them knows its formula. Errors name the
key as the user wrote it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from tallystick.core.algebra.dims import Dim
from tallystick.core.dtypes import BITS
from tallystick.errors import BadInput, Code, nearest, quoted, shown

T = TypeVar("T")

# Tensors are indexed by signed 64-bit integers: nothing larger can be a size.
LARGEST = 2**63 - 1

LARGEST_NUMBER = sys.float_info.max  # largest number for keys that need no integer

# Most layers that are read one by one, each with its own block if the next differs.
MOST_LISTED = 2_000

# Keys that a config of any family may carry and an override may therefore set.
COMMON_KEYS = ("dtype", "torch_dtype", "model_type")

# Names of files in a model's folder: the config, a PEFT adapter's, litgpt's, Meta's and Mistral's,
# and the tokenizer.
CONFIG, ADAPTER_CONFIG, LITGPT_CONFIG = "config.json", "adapter_config.json", "model_config.yaml"
TOKENIZER = "tokenizer.json"
OTHER_CONFIGS = frozenset((LITGPT_CONFIG, "params.json"))

# The key that states whether the LM head is tied to the token embedding.
TIE = "tie_word_embeddings"

# The key by which transformers gives single layers other sizes. Only families that declare it
# read it.
OWN_SIZES = "per_layer_config"


class Key(NamedTuple):
    """Values that a config key may hold, if the type of its default does not say so."""

    default: int | str | None
    least: int = 1
    nullable: bool = False
    listed: bool = False
    word: str | None = None  # the word that may replace an integer


def optional(default: int | None = None) -> Key:
    """Return the key of a positive integer or null; if `default` is a flag, of a flag or null.

    An absent key gives `default`, null gives None.
    """
    return Key(default, nullable=True)


def nonnegative(default: int | None = 0, *, nullable: bool = False) -> Key:
    """Return the key of an integer of 0 or more: a number of things that a model may lack.

    Args:
        default: the value of an absent key.
        nullable: whether null is allowed.
    """
    return Key(default, least=0, nullable=nullable)


def per_layer(default: int) -> Key:
    """Return the key of a positive integer for all layers, or of a list with one for each layer."""
    return Key(default, listed=True)


def int_or(word: str) -> Key:
    """Return the key of a positive integer, or of a word that leaves the size to the type.

    The word gives None, and is the default.
    """
    return Key(word, word=word)


REQUIRED = Key(None)  # the config must state it


class Config:
    """Config values for an architecture, each checked when it is read.

    `keys` declares them by their defaults:

    - ``n_embd=768``: a positive integer; ``optional()``: an integer or null
    - ``int_or("auto")``: an integer or that word; ``per_layer(8)``: an integer or a list of them
    - ``bias=True``: a flag; ``optional(False)``: a flag or null
    - ``attn_pdrop=0.1``: a number of 0 or more (null is 0)
    - ``hidden_act="gelu"``: a word; ``widths=()``: a list of positive integers
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        keys: Mapping[str, Any],
        *,
        where: str,
        aliases: Mapping[str, str] | None = None,
        published: bool = False,
        headed: bool = True,
        within: str = "",
    ) -> None:
        self._where, self._within = where, within
        self._keys = keys
        self._aliases = aliases or {}
        # If a config holds both a key and its alias, the alias counts: transformers sets it last.
        self._written = {key: alias for alias, key in (aliases or {}).items() if values.get(alias) is not None}
        self._values = {**values, **{key: values[alias] for key, alias in self._written.items()}}
        if OWN_SIZES not in keys:
            self.refuse_own_sizes()
        self.symbols: dict[str, int] = {}  # integer keys read so far, in reading order
        # Some models exist in two layouts with one count. Mixtures of experts are published with
        # single experts (`experts.0.w1.weight`); transformers 5 fuses them
        # (`experts.gate_up_proj`) and also renamed heads.
        self.published = published
        self.headed = headed  # read for the type's language model, not for another class

    def __getattr__(self, name: str) -> Any:
        keys = self.__dict__.get("_keys", {})
        if name not in keys:
            raise AttributeError(f"{name} is read but not declared by its architecture")
        key = keys[name]
        default = key.default if isinstance(key, Key) else key
        stated = self._values.get(name)
        if isinstance(stated, list | tuple) and len(stated) > MOST_LISTED:
            raise self.refuse(
                f"{name} lists {len(stated):,} values, more than the {MOST_LISTED:,} allowed", code="too-large"
            )
        if isinstance(default, bool):  # a bool is an int too
            return self._flag(name, key if isinstance(key, Key) else Key(key))
        if isinstance(key, Key) and key.listed and isinstance(stated, list | tuple):
            return self._for_layers(name, key)
        if isinstance(key, Key | int):
            return self._integer(name, key if isinstance(key, Key) else Key(key))
        if isinstance(key, tuple | float):
            return self._integers(name, key) if isinstance(key, tuple) else self._number(name, key)
        return self._values.get(name, key)

    def refuse(self, why: str, *, code: Code = "bad-value") -> BadInput:
        """Return the error for contradictory values, which the caller raises.

        Args:
            why: the contradiction, beginning with a key.
            code: the error's code.
        """
        return BadInput(f"{self._where}: {self._within}{why}", code=code)

    def refuse_own_sizes(self, but: Container[str] = ()) -> None:
        """Raise `BadInput` if `per_layer_config` changes a key of the family not in `but`.

        transformers does not build such a model either.
        """
        layers = self._values.get(OWN_SIZES)
        for layer in layers.values() if isinstance(layers, Mapping) else ():
            for key, value in layer.items() if isinstance(layer, Mapping) else ():
                if key not in but and key in self._keys and value != self._values.get(key):
                    raise self.refuse(f"per_layer_config gives single layers their own {key}, which cannot be counted")

    def part(self, name: str) -> Config:
        """Return the nested config under a key.

        Its keys have their own names; its errors and symbols begin with the outer key.
        """
        prefix = f"{name}."
        part = Config(
            _below(prefix, self._values),
            _below(prefix, self._keys),
            where=self._where,
            aliases={alias: key.removeprefix(prefix) for alias, key in _below(prefix, self._aliases).items()},
            published=self.published,
            headed=self.headed,
            within=self._within + prefix,
        )
        part.symbols = self.symbols
        return part

    def in_force(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of declared keys, defaults filled in."""
        declared = {name: self._keys[name] for name in keys}
        defaults = {name: key.default if isinstance(key, Key) else key for name, key in declared.items()}
        return {name: self._values.get(name, default) for name, default in defaults.items()}

    def states(self, name: str) -> bool:
        """Return whether the config holds a key, declared or not, that is not null, false or 0."""
        return bool(self._values.get(name))

    def require_divisible(self, name: str, by: str) -> None:
        """Raise `BadInput` if a width is not divisible by its heads.

        Needed only if no shape depends on the quotient: a `Dim` checks its own division.

        Args:
            name: key of the width.
            by: key of the number of heads.
        """
        value, divisor = getattr(self, name), getattr(self, by)
        if int(value) % int(divisor):
            name, by = self._written.get(name, name), self._written.get(by, by)
            raise self.refuse(f"{name} = {int(value)} is not divisible by {by} = {int(divisor)}", code="indivisible")

    @property
    def dtype(self) -> str | None:
        """The dtype that the config states, by torch's name; None if it states none."""
        stated = self._values.get("dtype") or self._values.get("torch_dtype")
        if stated is None:
            return None
        name = str(stated).removeprefix("torch.")  # a book's dictionary holds the object torch.bfloat16
        name = {"auto": "float32", "float": "float32", "half": "float16"}.get(name, name)
        if name not in BITS:
            raise self.refuse(f"dtype is {shown(stated)}, which is not a dtype{nearest(name, BITS)}")
        return name

    def _flag(self, name: str, key: Key) -> bool:
        value = self._values.get(name, key.default)
        if value is None and key.nullable:
            return False
        if not isinstance(value, bool):
            null = ", or null" if key.nullable else ""
            raise self.refuse(f"{name} is {shown(value)}, expected true or false{null}")
        return value

    def _number(self, name: str, default: float) -> float:
        value = self._values.get(name, default)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST_NUMBER:
            raise self.refuse(f"{name} is {shown(value)}, expected a number of 0 or more")
        return float(value)

    def _integer(self, name: str, key: Key) -> Dim | None:
        if name not in self._values:
            if key.default is None and not key.nullable:
                raise self.refuse(f"{name} is missing")
            value: Any = key.default
        else:
            value = self._values[name]
        if (value is None and key.nullable) or (key.word is not None and value == key.word):
            return None
        return self._size(name, value, key)

    def _integers(self, name: str, default: tuple[int, ...]) -> tuple[Dim, ...]:
        """Return a list of positive integers, each with its own symbol: widths_0, widths_1, ..."""
        values = self._values.get(name, default)
        if not isinstance(values, list | tuple):
            raise self.refuse(f"{name} is {shown(values)}, expected a list of positive integers")
        return tuple(self.size(f"{name}_{number}", value) for number, value in enumerate(values))

    def _for_layers(self, name: str, key: Key) -> Dim | tuple[Dim, ...]:
        """Return the values of each layer; one `Dim` if all layers have the same."""
        values = self._values[name]
        if values and values.count(values[0]) == len(values):
            return self._size(name, values[0], key)
        return self._integers(name, ())

    def size(self, name: str, value: Any) -> Dim:
        """Return a positive integer that is not under a key of its own in the config.

        Args:
            name: its symbol in formulas and its name in errors.
            value: the value to check.
        """
        return self._size(name, value, Key(None))

    def _size(self, name: str, value: Any, key: Key) -> Dim:
        number = _whole(value)
        if number is None or not key.least <= number <= LARGEST:
            kind = "a positive integer" if key.least else "an integer of 0 or more"
            limit = " below 2^63" if number is not None and number > LARGEST else ""
            null = " or null" if key.nullable else f" or {key.word!r}" if key.word else ""
            raise self.refuse(f"{self._written.get(name, name)} is {shown(value)}, expected {kind}{limit}{null}")
        symbol = (self._within + name).replace(".", "_")  # valid as a name in SymPy and Python too
        self.symbols[symbol] = number
        return Dim(number, symbol)


class NestedConfig(NamedTuple):
    """A config nested in another: its keys, as an `Architecture` declares them."""

    keys: Mapping[str, Any]
    running: Mapping[str, Any] = {}
    aliases: Mapping[str, str] = {}
    model_type: str = ""  # the one type that is accepted, if transformers would build whatever type it states
    optional: bool = False  # null and absent mean that the model has no such part; otherwise it has one by default
    unstated: Mapping[str, Any] = {}  # its values if the outer config does not mention it
    at_outer_level: bool = False  # its keys may be at the outer level if the config has no such part
    family: str = ""  # the native type whose keys these are, with its own or other defaults


def with_nested_defaults(values: Mapping[str, Any], parts: Mapping[str, NestedConfig]) -> dict[str, Any]:
    """Return a config in which unmentioned nested configs have the values of their type.

    Args:
        values: the config.
        parts: keys of nested configs, with their declarations.
    """
    stated = {str(name).partition(".")[0] for name, value in values.items() if value is not None}
    return {**values, **{name: part.unstated for name, part in parts.items() if part.unstated and name not in stated}}


def flatten_nested(values: Mapping[str, Any], parts: Mapping[str, NestedConfig], where: str) -> dict[str, Any]:
    """Return a config with the keys of its nested configs at the top level, under dotted names.

    Keys that are already dotted override the nested ones. The value left under the name of a nested
    config says whether there is one: null, or an empty mapping.

    Args:
        values: the config.
        parts: keys of nested configs, with their declarations.
        where: name of the config in errors.

    Raises:
        BadInput: if the value of a nested config is not an object.

    >>> flatten_nested({"text_config": {"hidden_size": 8}}, {"text_config": NestedConfig({})}, "")
    {'text_config': {}, 'text_config.hidden_size': 8}
    """
    out: dict[str, Any] = {}
    for name, part in parts.items():
        if part.at_outer_level and values.get(name) is None:
            out |= {f"{name}.{key}": values[key] for key in (*part.keys, *part.aliases) if key in values}
    for name, value in values.items():
        if name in parts and value is not None:
            if not isinstance(value, Mapping):
                raise BadInput(f"{where}: {name} is {shown(value)}, expected an object", code="bad-value")
            out[name] = {}
            out |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            out[name] = value
    dotted = {
        name: value for name, value in values.items() if str(name).partition(".")[0] in parts and "." in str(name)
    }
    return {name.partition(".")[0]: {} for name in dotted} | out | dotted


def _below(prefix: str, values: Mapping[str, T]) -> dict[str, T]:
    return {key.removeprefix(prefix): value for key, value in values.items() if str(key).startswith(prefix)}


def _whole(value: Any) -> int | None:
    """Return an integer of any kind, also NumPy's and torch's, as int; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def merged(
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    known: Iterable[str],
    aliases: Mapping[str, str],
    where: str,
) -> dict[str, Any]:
    """Return a config with the user's ``--set`` values.

    Args:
        values: the config.
        overrides: the user's keys and values.
        known: keys that may be set, besides those in `values`.
        aliases: other names of keys.
        where: name of the config in errors.

    Raises:
        BadInput: for a key that nothing reads.
    """
    known = {key for key in (*known, *aliases, *values, *COMMON_KEYS) if isinstance(key, str)}
    aliases = {"torch_dtype": "dtype", **aliases}
    out = dict(values)
    for named, value in overrides.items():
        if named not in known:
            raise BadInput(f"{where} has no key {quoted(named)} to set{nearest(named, known)}", code="unknown-key")
        # An alias and its key are the same: the override must win over both.
        key = aliases.get(named, named)
        for alias in [alias for alias, target in aliases.items() if target == key]:
            out.pop(alias, None)
        out[key] = value
        if named != key and value is not None:
            out[named] = value  # so that an error about it uses the user's own word
    return out
