"""Build a config's model with transformers on the meta device, inside the subprocess."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tallystick import architectures
from tallystick.errors import BadInput, nearest, quoted, shown
from tallystick.sources.gc_paused import gc_paused
from tallystick.sources.roles.from_names import by_number
from tallystick.sources.text_tensors import names_built
from tallystick.sources.torch_module.module import facts_of
from tallystick.sources.torch_module.named_parameters import everything_in

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

# A layer is many Python objects, even on the meta device: a thousand layers take seconds.
MOST_LAYERS = 1_000
LONGEST_LIST = 10_000  # items; real configs list some hundreds of labels or layers

# Keys of a config that point to code or files elsewhere and change no tensor. transformers reads
# them in each nested config.
_LEADING_ELSEWHERE = frozenset(
    {
        "auto_map",
        "custom_pipelines",
        "trust_remote_code",
        "_name_or_path",
        "name_or_path",
        "_commit_hash",
        "code_revision",
    }
)
# Keys that name kernels, which may be code in a repository.
_KERNELS = ("attn_implementation", "experts_implementation", "use_kernels")


def knows(model_type: str, name: str | None = None) -> bool:
    """Return whether transformers knows a model type and, if given, has that class for its configs.

    Args:
        model_type: the model type.
        name: the name of a class.
    """
    import transformers

    known = model_type in transformers.CONFIG_MAPPING
    return known and (name is None or _takes(name, transformers.CONFIG_MAPPING[model_type]) is not None)


def _takes(name: str, config: type) -> Any:
    """Return transformers' class of that name if it accepts such a config, else None."""
    import transformers

    kind = getattr(transformers, name, None)
    return kind if isinstance(kind, type) and getattr(kind, "config_class", None) is config else None


@gc_paused()
def build(
    *,
    source: str,
    model_type: str,
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    classes: Sequence[str],
    stored: Mapping[str, str],
    language: bool,
    most: int,
) -> dict[str, Any]:
    """Build a model and return the fields of `fallback.Built` as JSON.

    The arguments are those of `built_by_transformers`; `most` limits modules and parameters.

    Raises:
        BadInput: if transformers cannot build the model, or it has more than `most` modules and
            parameters.
    """
    import transformers

    model = _model(model_type, values, overrides, source=source, classes=classes, most=most)
    return {
        "version": transformers.__version__,
        "facts": facts_of(model, everything_in(model)).to_json(),
        "config": _as_json(model.config.to_dict()),
        "loaded": _loaded_names(model, stored) if stored else {},
        "language": sorted(names_built(model, source)) if language else None,
    }


def _model(
    model_type: str,
    values: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    source: str,
    classes: Sequence[str],
    most: int,
) -> PreTrainedModel:
    import torch
    import transformers

    if model_type not in transformers.CONFIG_MAPPING:
        types = {*transformers.CONFIG_MAPPING.keys(), *architectures.known()}
        raise BadInput(
            f"{source}: neither tallystick nor transformers {transformers.__version__} knows the model type"
            f" {quoted(model_type)}{nearest(model_type, types)}",
            code="unknown-model-type",
        )
    values, overrides = without_leads(values), without_leads(overrides)
    _refuse_too_many({**values, **overrides}, source)
    try:
        if overrides or any("." in str(key) for key in values):
            values = _with_overrides(_known(model_type, values), values, overrides, source)
        config = _config(model_type, values)
        make = _maker(config, classes)
        with torch.device("meta"), _not_without_end(source, most):
            model = make(config)
        if hasattr(model, "all_tied_weights_keys"):
            model.tie_weights(recompute_mapping=False)  # transformers 5.0 ties nothing on the meta device
        return model
    except (BadInput, MemoryError):
        raise
    except Exception as error:  # any error is the config's fault; report it in one line
        if type(error).__name__ == "OfflineModeIsEnabled":
            raise BadInput(f"{source}: {_needs_hub(values)}", code="unsupported") from error
        raise BadInput(f"{source}: transformers cannot build it: {_one_line(error)}", code="unsupported") from error


def bring() -> None:
    """Import the parts of torch that write files when imported, which sealed code may not do."""
    import torch

    if torch.distributed.is_available():
        import torch.distributed.nn


def leave_uninitialised() -> None:
    """Disable weight initialisation in this process.

    On the meta device it does nothing, and takes a third of a build.
    """
    from torch.nn import init

    for name in ("kaiming_uniform_", "normal_", "ones_", "trunc_normal_", "uniform_", "xavier_uniform_", "zeros_"):
        setattr(init, name, lambda tensor, *_, **__: tensor)


def without_leads(value: Any) -> Any:
    """Return a config without keys that point to code or files elsewhere, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_leads(inner) for key, inner in value.items() if not _leads(key)}
    return [without_leads(inner) for inner in value] if isinstance(value, list | tuple) else value


def _leads(key: Any) -> bool:
    last = str(key).rpartition(".")[2]  # the key without the names of nested configs
    return last in _LEADING_ELSEWHERE or last.strip("_").startswith(_KERNELS)


def _needs_hub(values: Mapping[str, Any]) -> str:
    """Return why a config cannot be built offline, with the key that names a repository."""
    named = next(
        ((key, value) for key, value in _flat(values) if key.endswith("backbone") and isinstance(value, str)), None
    )
    what = f"{named[0]} names {quoted(named[1])}, which" if named else "it names what"
    return f"{what} transformers would fetch from the hub; local configs never use the network: state backbone_config"


def _flat(values: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        yield f"{within}{key}", value
        if isinstance(value, Mapping):
            yield from _flat(value, f"{within}{key}.")


def _refuse_too_many(values: Mapping[str, Any], source: str, within: str = "") -> None:
    """Raise `BadInput` for a config with too many layers, at its top or in a nested config."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            _refuse_too_many(value, source, f"{within}{key}.")
        elif isinstance(value, list) and len(value) > LONGEST_LIST:
            raise BadInput(
                f"{source}: {within}{key} lists {len(value):,} values, too many for transformers to build from",
                code="too-large",
            )
        elif str(key).endswith(("layer", "layers")) and isinstance(value, int) and value > MOST_LAYERS:
            raise BadInput(
                f"{source}: {within}{key} is {shown(value)}, too many for transformers to build",
                code="too-large",
            )


def _config(model_type: str, values: Mapping[str, Any]) -> PreTrainedConfig:
    import transformers

    kept = {key: value for key, value in values.items() if key != "model_type"}
    return transformers.AutoConfig.for_model(model_type, **_with_floats(kept))


def _known(model_type: str, values: Mapping[str, Any]) -> PreTrainedConfig:
    """Return a config with the keys of these values.

    If the values are invalid without overrides, return the type's default config.
    """
    try:
        return _config(model_type, values)
    except Exception:  # as above: whatever transformers raises
        return _config(model_type, {})


def _with_overrides(
    known: PreTrainedConfig, values: Mapping[str, Any], overrides: Mapping[str, Any], source: str, within: str = ""
) -> dict[str, Any]:
    """Return values with overrides set; dotted names and objects set keys of nested configs.

    Raise `BadInput` for an unknown key, which transformers would keep and never read.
    """
    dotted = {key: value for key, value in values.items() if "." in str(key) and _part(known, key.partition(".")[0])}
    out = {key: value for key, value in values.items() if key not in dotted}
    for named, value in {**dotted, **overrides}.items():
        name, dot, inner = named.partition(".")
        part = _part(known, name)
        if part is not None and (dot or value is not None):
            before = _beyond_its_type(part) if out.get(name) is None else out[name]
            for given in (before, {} if dot else value):
                if not isinstance(given, Mapping):
                    raise BadInput(f"{source}: {within}{name} is {shown(given)}, expected an object", code="bad-value")
            out[name] = _with_overrides(part, before, {inner: value} if dot else value, source, f"{within}{name}.")
        elif named in values or (hasattr(known, named) and not callable(getattr(known, named))):
            out[named] = value
        else:
            near = nearest(within + named, _names(known, within))
            raise BadInput(f"{source} has no key {quoted(within + named)} to set{near}", code="unknown-key")
    return out


def _part(known: PreTrainedConfig, name: str) -> PreTrainedConfig | None:
    """Return the nested config under a key, or None."""
    import transformers

    part = getattr(known, name, None)
    return part if isinstance(part, transformers.PreTrainedConfig) else None


def _names(known: PreTrainedConfig, within: str) -> Iterator[str]:
    """Yield the keys of a config, with dotted names for nested configs."""
    for name in known.to_dict():
        yield within + name
        if part := _part(known, name):
            yield from _names(part, f"{within}{name}.")


def _beyond_its_type(part: PreTrainedConfig) -> dict[str, Any]:
    """Return a nested config's values that differ from its type's defaults."""
    usual = type(part)().to_dict()
    own = {key: value for key, value in part.to_dict().items() if key not in usual or value != usual[key]}
    return {"model_type": part.model_type, **own}


@contextmanager
def _not_without_end(source: str, most: int) -> Iterator[None]:
    """Abort construction after `most` modules and parameters, with `BadInput`."""
    from torch.nn.modules import module

    built = 0

    def count(*_: object) -> None:
        nonlocal built
        built += 1
        if built > most:
            raise BadInput(
                f"{source}: transformers would build more than {most:,} modules and parameters", code="too-large"
            )

    hooks = [module.register_module_module_registration_hook(count)]
    hooks.append(module.register_module_parameter_registration_hook(count))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _with_floats(value: Any) -> Any:
    """Convert ``{"__float__": "Infinity"}``, as transformers writes infinities, to floats."""
    if isinstance(value, Mapping):
        if value.keys() == {"__float__"}:
            return float(value["__float__"])
        return {key: _with_floats(inner) for key, inner in value.items()}
    return [_with_floats(inner) for inner in value] if isinstance(value, list) else value


def _maker(config: Any, classes: Sequence[str]) -> Callable[[Any], PreTrainedModel]:
    """Return the function that builds a config's model, with its module imported.

    PyTorch before 2.9 computes something on import that the meta device forbids.
    """
    for name in classes:
        if kind := _takes(name, type(config)):
            make: Callable[[Any], PreTrainedModel] = kind._from_config  # in the config's dtype, as the Auto classes do
            return make
    family = _family(config)
    family._model_mapping.get(type(config), None)
    return partial(family.from_config, trust_remote_code=False)


def _family(config: Any) -> Any:
    """Return the first Auto class that builds this config; causal language models come first."""
    import transformers

    for auto in (
        "AutoModelForCausalLM",
        "AutoModelForSeq2SeqLM",
        "AutoModelForImageTextToText",
        "AutoModelForMaskedLM",
    ):
        family = getattr(transformers, auto)
        if type(config) in family._model_mapping:
            alone = _takes_part(family._model_mapping[type(config)], config)
            return transformers.AutoModelForTextToWaveform if alone else family
    if type(config) not in transformers.AutoModel._model_mapping:
        # transformers says so too, after it has imported all other configs, which takes seconds
        raise ValueError(f"no Auto class builds a {type(config).__name__}")
    return transformers.AutoModel


def _takes_part(kind: Any, config: Any) -> bool:
    """Return whether a class takes a nested config other than the text config.

    MusicGen's decoder does. The Auto classes do not pass on nested configs.
    """
    parts = {name: part for name, part in config.sub_configs.items() if name != "text_config"}
    return getattr(kind, "config_class", None) in parts.values()


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def _loaded_names(model: PreTrainedModel, names: Mapping[str, str]) -> dict[str, str]:
    """Return the model's name for each stored tensor, as the loader finds it.

    `names` maps each stored name to its unpacked name.
    """
    expected = model.state_dict().keys()
    prefix = f"{model.base_model_prefix}."

    def fitted(name: str) -> str:
        """Return the name with the base model's prefix added or removed, as a loader does."""
        return next((one for one in (name, prefix + name, name.removeprefix(prefix)) if one in expected), name)

    converted = _conversion(model)
    loaded = {}
    for name in sorted(names, key=by_number):  # some conversions depend on an earlier name
        plain = names[name]
        new = fitted(converted(plain))
        loaded[name] = new if new in expected else fitted(plain)
    return loaded


def _conversion(model: PreTrainedModel) -> Callable[[str], str]:
    """Return the function that renames old tensor names, if this transformers version has one."""
    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

        known = get_model_conversion_mapping(model)
    except (ImportError, AttributeError, TypeError):
        return str
    renamings = [one for one in known if isinstance(one, WeightRenaming)]
    converters = [one for one in known if isinstance(one, WeightConverter)]
    return lambda name: rename_source_key(name, renamings, converters)[0]


def _as_json(value: Any) -> Any:
    """Convert a value to JSON; write other types, such as a dtype, as text."""
    if isinstance(value, Mapping):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_as_json(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
