"""What people do to tied models, each with the real library: one small function, one line on what it does.

An operation gets a tied GPT-2 and a desk to work at, and returns the model that its user goes on with.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import nn

VOCABULARY, WIDTH = 64, 8
LORA_TYING = 'LoRA, modules_to_save=["lm_head"], ensure_weight_tying'


class Desk(NamedTuple):
    """Where an operation may leave files, and what to undo when its model has been looked at."""

    folder: Path
    later: ExitStack


Run = Callable[[Any, Desk], Any]


class Operation(NamedTuple):
    """Something that people do to a model."""

    name: str
    library: str  # as it is imported
    run: Run
    instead: str = ""  # the name of one that keeps the tie, where `retie` cannot mend what this one did

    @property
    def what(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").strip()


OPERATIONS: list[Operation] = []


def _operation(name: str, library: str = "torch", instead: str = "") -> Callable[[Run], Run]:
    def put(run: Run) -> Run:
        OPERATIONS.append(Operation(name, library, run, instead))
        return run

    return put


def tied_model() -> Any:
    """A GPT-2 of two layers, the same each time; its head is its embedding."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return GPT2LMHeadModel(tied_config(GPT2Config))


def tied_config(kind: Any) -> Any:
    """Without dropout, so that two runs agree; without a cache, which an export cannot return."""
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    sizes = {"vocab_size": VOCABULARY, "n_positions": 8, "n_embd": WIDTH, "n_layer": 2, "n_head": 2}
    return kind(**sizes, **rates, use_cache=False, bos_token_id=0, eos_token_id=0, tie_word_embeddings=True)


def _random(*shape: int) -> torch.Tensor:
    """New values, the same each time."""
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def _other_embedding() -> nn.Embedding:
    from torch import nn

    return nn.Embedding(VOCABULARY, WIDTH, _weight=_random(VOCABULARY, WIDTH))


def _other_head() -> nn.Linear:
    from torch import nn

    head = nn.Linear(WIDTH, VOCABULARY, bias=False)
    head.weight.data = _random(VOCABULARY, WIDTH)
    return head


# -- copying and saving ---------------------------------------------------------------------------


@_operation("copy.deepcopy(model)", "copy")
def deepcopy_whole(model: Any, desk: Desk) -> Any:
    """Copy the model as a whole."""
    return copy.deepcopy(model)


@_operation("copy.deepcopy of the parts", "copy")
def deepcopy_parts(model: Any, desk: Desk) -> Any:
    """Copy the body and the head one after the other."""
    model.transformer, model.lm_head = copy.deepcopy(model.transformer), copy.deepcopy(model.lm_head)
    return model


@_operation("pickle.loads(pickle.dumps(model))", "pickle")
def pickled(model: Any, desk: Desk) -> Any:
    """Pickle the model as a whole."""
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - our own


@_operation("torch.save, torch.load: the whole model")
def saved_whole(model: Any, desk: Desk) -> Any:
    """Save the module itself, and load it with weights_only=False."""
    import torch

    torch.save(model, desk.folder / "model.pt")
    return torch.load(desk.folder / "model.pt", weights_only=False)


@_operation("torch.save, torch.load: the state dict")
def saved_state(model: Any, desk: Desk) -> Any:
    """Save the state dict, load it with weights_only=True into a fresh model."""
    import torch

    torch.save(model.state_dict(), desk.folder / "state.pt")
    fresh = tied_model()
    fresh.load_state_dict(torch.load(desk.folder / "state.pt", weights_only=True))
    return fresh


@_operation("torch.distributed.checkpoint save, load")
def saved_distributed(model: Any, desk: Desk) -> Any:
    """Save the state dict as a distributed checkpoint, load it into a fresh model."""
    from torch.distributed import checkpoint

    fresh = tied_model()
    state = fresh.state_dict()
    checkpoint.save(model.state_dict(), checkpoint_id=desk.folder / "dcp", no_dist=True)
    checkpoint.load(state, checkpoint_id=desk.folder / "dcp", no_dist=True)
    fresh.load_state_dict(state)
    return fresh


# -- loading --------------------------------------------------------------------------------------


@_operation("load_state_dict(state)")
def loaded(model: Any, desk: Desk) -> Any:
    """Load a state dict with both names."""
    model.load_state_dict(tied_model().state_dict())
    return model


@_operation("load_state_dict(cloned)")
def loaded_cloned(model: Any, desk: Desk) -> Any:
    """Load a state dict whose tensors were cloned, one for each name."""
    model.load_state_dict(_cloned(model))
    return model


@_operation("load_state_dict(headless, strict=False)")
def loaded_headless(model: Any, desk: Desk) -> Any:
    """Load a state dict that does not hold the head."""
    model.load_state_dict(_headless(model), strict=False)
    return model


@_operation("load_state_dict(state, assign=True)")
def assigned(model: Any, desk: Desk) -> Any:
    """Assign from a state dict whose two names are one tensor."""
    model.load_state_dict(model.state_dict(), assign=True)
    return model


@_operation("load_state_dict(cloned, assign=True)")
def assigned_cloned(model: Any, desk: Desk) -> Any:
    """Assign from a state dict whose tensors were cloned, one for each name."""
    model.load_state_dict(_cloned(model), assign=True)
    return model


@_operation("load_state_dict(headless, strict=False, assign=True)")
def assigned_headless(model: Any, desk: Desk) -> Any:
    """Assign other values from a state dict that does not hold the head."""
    state = {name: tensor + 1 for name, tensor in _headless(model).items()}
    model.load_state_dict(state, strict=False, assign=True)
    return model


def _cloned(model: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _headless(model: Any) -> dict[str, torch.Tensor]:
    return {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}


# -- moving ---------------------------------------------------------------------------------------


@_operation("model.to(torch.bfloat16)")
def to_bfloat16(model: Any, desk: Desk) -> Any:
    """Change the dtype."""
    import torch

    return model.to(torch.bfloat16)


@_operation('model.to("meta")')
def to_meta(model: Any, desk: Desk) -> Any:
    """Move to the device that holds no values."""
    return model.to("meta")


@_operation('model.to_empty(device="cpu")')
def to_empty(model: Any, desk: Desk) -> Any:
    """Build on the meta device, materialise, and initialise each parameter."""
    import torch

    with torch.device("meta"):
        fresh = tied_model()
    fresh.to_empty(device="cpu")
    with torch.no_grad():
        for number, parameter in enumerate(fresh.parameters()):
            parameter.copy_(_random(*parameter.shape) + number)
    return fresh


# -- compiling and calling ------------------------------------------------------------------------


@_operation("torch.compile(model)")
def compiled(model: Any, desk: Desk) -> Any:
    """Compile the model; traced with its gradients, but no code is generated."""
    import torch

    return torch.compile(model, backend="aot_eager")


@_operation("torch.export.export(model).module()")
def exported(model: Any, desk: Desk) -> Any:
    """Export the model, and go on with the exported program as a module."""
    import torch

    ids = torch.tensor([[1, 2, 3]])
    return torch.export.export(model, (ids,)).module()


@_operation("torch.func.functional_call, one value for both")
def called_with_one(model: Any, desk: Desk) -> Any:
    """Call the model with another tensor in the embedding's place; the head is to take it too."""
    from torch import nn

    return _as_module(model, {"transformer.wte.weight": nn.Parameter(_random(VOCABULARY, WIDTH))})


@_operation("torch.func.functional_call, two values", instead="torch.func.functional_call, one value for both")
def called_with_two(model: Any, desk: Desk) -> Any:
    """Call the model with one tensor for the embedding and another for the head."""
    from torch import nn

    names = ("transformer.wte.weight", "lm_head.weight")
    return _as_module(model, {name: nn.Parameter(_random(VOCABULARY, WIDTH)) for name in names})


def _as_module(model: Any, values: dict[str, Any]) -> Any:
    """A functional_call as a module, whose parameters are those that the model had in the call."""
    import torch
    from torch import nn

    class Call(nn.Module):  # type: ignore[misc]
        def forward(self, ids: torch.Tensor) -> Any:
            return torch.func.functional_call(model, values, (ids,))

    seen: dict[str, Any] = {}
    hook = model.register_forward_pre_hook(
        lambda inside, _: seen.update(inside.named_parameters(remove_duplicate=False))
    )
    call = Call()
    call(torch.tensor([[1]]))
    hook.remove()
    shell = copy.deepcopy(model)
    for name, value in seen.items():
        setattr(shell.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], value)
    call.transformer, call.lm_head = shell.transformer, shell.lm_head
    return call


# -- surgery --------------------------------------------------------------------------------------


@_operation("head.weight = nn.Parameter(embedding.weight.data)")
def wrapped_again(model: Any, desk: Desk) -> Any:
    """Tie by the data, where the Parameter is meant."""
    from torch import nn

    model.lm_head.weight = nn.Parameter(model.transformer.wte.weight.data)
    return model


@_operation("model.lm_head = nn.Linear(...)")
def replaced_head(model: Any, desk: Desk) -> Any:
    """Replace the head by one of the same shape."""
    model.lm_head = _other_head()
    return model


@_operation("model.lm_head = nn.Sequential(nn.Linear(...))")
def replaced_by_sequential(model: Any, desk: Desk) -> Any:
    """Replace the head by a Sequential that holds one of the same shape."""
    from torch import nn

    model.lm_head = nn.Sequential(_other_head())
    return model


@_operation("parametrizations.weight_norm(head)")
def parametrized(model: Any, desk: Desk) -> Any:
    """Split the head's weight into direction and length."""
    from torch.nn.utils import parametrizations

    parametrizations.weight_norm(model.lm_head)
    return model


@_operation("parametrize.register_parametrization(head)")
def parametrized_by_itself(model: Any, desk: Desk) -> Any:
    """Compute the head's weight from what it was."""
    from torch import nn
    from torch.nn.utils import parametrize

    parametrize.register_parametrization(model.lm_head, "weight", nn.Identity())
    return model


@_operation("prune.l1_unstructured(head)")
def pruned(model: Any, desk: Desk) -> Any:
    """Mask half of the head's weights."""
    from torch.nn.utils import prune

    prune.l1_unstructured(model.lm_head, "weight", 0.5)
    return model


@_operation("prune.l1_unstructured(head), prune.remove")
def pruned_for_good(model: Any, desk: Desk) -> Any:
    """Mask half of the head's weights and make that permanent."""
    from torch.nn.utils import prune

    prune.remove(prune.l1_unstructured(model.lm_head, "weight", 0.5), "weight")
    return model


# -- safetensors ----------------------------------------------------------------------------------


@_operation("save_file(state)", "safetensors", instead="save_model, load_model")
def save_file(model: Any, desk: Desk) -> Any:
    """Save the state dict as it is."""
    from safetensors.torch import save_file as save

    save(model.state_dict(), desk.folder / "model.safetensors")
    return model


@_operation("save_model, load_model", "safetensors")
def save_model(model: Any, desk: Desk) -> Any:
    """Save the module, and load it into a fresh one."""
    from safetensors import torch as safetensors

    fresh = tied_model()
    safetensors.save_model(model, str(desk.folder / "model.safetensors"))
    safetensors.load_model(fresh, desk.folder / "model.safetensors")
    return fresh


# -- transformers ---------------------------------------------------------------------------------


@_operation("save_pretrained, from_pretrained", "transformers")
def save_pretrained(model: Any, desk: Desk) -> Any:
    """Save the model and load it again."""
    return _reloaded(model, desk)


@_operation("replaced head, save_pretrained, from_pretrained", "transformers")
def save_pretrained_untied(model: Any, desk: Desk) -> Any:
    """Replace the head, save the model, whose config still says tied, and load it again."""
    model.lm_head = _other_head()
    return _reloaded(model, desk)


@_operation("resize_token_embeddings, larger", "transformers")
def resized_up(model: Any, desk: Desk) -> Any:
    """Add 8 tokens."""
    model.resize_token_embeddings(VOCABULARY + 8)
    return model


@_operation("resize_token_embeddings, smaller", "transformers")
def resized_down(model: Any, desk: Desk) -> Any:
    """Take away 8 tokens."""
    model.resize_token_embeddings(VOCABULARY - 8)
    return model


@_operation("resize_token_embeddings, padded", "transformers")
def resized_padded(model: Any, desk: Desk) -> Any:
    """Add one token, and pad to a multiple of 16."""
    model.resize_token_embeddings(VOCABULARY + 1, pad_to_multiple_of=16)
    return model


@_operation("set_input_embeddings", "transformers")
def input_set(model: Any, desk: Desk) -> Any:
    """Set another embedding of the same shape."""
    model.set_input_embeddings(_other_embedding())
    return model


@_operation("set_input_embeddings, tie_weights", "transformers")
def input_set_and_tied(model: Any, desk: Desk) -> Any:
    """Set another embedding, then have the library tie."""
    model.set_input_embeddings(_other_embedding())
    model.tie_weights()
    return model


@_operation("set_output_embeddings", "transformers")
def output_set(model: Any, desk: Desk) -> Any:
    """Set another head of the same shape."""
    model.set_output_embeddings(_other_head())
    return model


def _reloaded(model: Any, desk: Desk) -> Any:
    model.save_pretrained(desk.folder / "model")
    return type(model).from_pretrained(desk.folder / "model")


# -- accelerate -----------------------------------------------------------------------------------


@_operation("init_empty_weights", "accelerate")
def empty_weights(model: Any, desk: Desk) -> Any:
    """Build the model without values."""
    from accelerate import init_empty_weights

    with init_empty_weights():
        return tied_model()


@_operation("dispatch_model", "accelerate")
def dispatched(model: Any, desk: Desk) -> Any:
    """Dispatch to the CPU, with the hooks that several devices would get."""
    from accelerate import dispatch_model

    places = dict.fromkeys(("transformer", "lm_head"), "cpu")
    return dispatch_model(model, places, main_device="cpu", force_hooks=True)


@_operation("cpu_offload", "accelerate")
def offloaded(model: Any, desk: Desk) -> Any:
    """Keep the weights in a state dict, and bring each to its module for its forward alone."""
    import torch
    from accelerate import cpu_offload

    return cpu_offload(model, torch.device("cpu"))


# -- PEFT -----------------------------------------------------------------------------------------


@_operation("LoRA", "peft")
def lora(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention."""
    return _lora(model)


@_operation("LoRA, merge_and_unload", "peft")
def lora_merged(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention, merge it."""
    return _lora(model).merge_and_unload()


@_operation('LoRA, modules_to_save=["lm_head"]', "peft", instead=LORA_TYING)
def lora_saving_head(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention, and train the head in full."""
    return _lora(model, modules_to_save=["lm_head"])


@_operation('LoRA, modules_to_save=["lm_head"], merge_and_unload', "peft", instead=f"{LORA_TYING}, merge_and_unload")
def lora_saving_head_merged(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention, train the head in full, merge."""
    return _lora(model, modules_to_save=["lm_head"]).merge_and_unload()


@_operation('LoRA, modules_to_save=["wte", "lm_head"]', "peft")
def lora_saving_both(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention, and train embedding and head in full."""
    return _lora(model, modules_to_save=["wte", "lm_head"])


@_operation(LORA_TYING, "peft")
def lora_saving_tied(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention, and train embedding and head in full, as one."""
    return _lora(model, modules_to_save=["lm_head"], ensure_weight_tying=True)


@_operation(f"{LORA_TYING}, merge_and_unload", "peft")
def lora_saving_tied_merged(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention, train embedding and head in full, as one, merge."""
    return _lora(model, modules_to_save=["lm_head"], ensure_weight_tying=True).merge_and_unload()


@_operation("LoRA on the head", "peft")
def lora_on_head(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention and on the head."""
    return _lora(model, target_modules=["c_attn", "lm_head"])


@_operation("LoRA on the head, merge_and_unload", "peft")
def lora_on_head_merged(model: Any, desk: Desk) -> Any:
    """Put LoRA on the attention and on the head, merge it."""
    return _lora(model, target_modules=["c_attn", "lm_head"]).merge_and_unload()


def _lora(model: Any, **settings: Any) -> Any:
    from peft import LoraConfig, get_peft_model

    given = {"target_modules": ["c_attn"], "fan_in_fan_out": True, "r": 2, "init_lora_weights": False, **settings}
    return get_peft_model(model, LoraConfig(**given))


# -- torchao --------------------------------------------------------------------------------------


@_operation("quantize_, int8 weights", "torchao", instead="quantize_, int8 weights, head left out")
def quantised(model: Any, desk: Desk) -> Any:
    """Quantise the weights of the Linear modules: here the head alone, since GPT-2's others are Conv1D."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    quantize_(model, Int8WeightOnlyConfig(version=2))
    return model


@_operation("quantize_, int8 weights, head left out", "torchao")
def quantised_but_head(model: Any, desk: Desk) -> Any:
    """Quantise the weights of the Linear modules other than the head, of which GPT-2 has none."""
    from torch import nn
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    def chosen(module: Any, name: str) -> bool:
        return isinstance(module, nn.Linear) and name != "lm_head"

    quantize_(model, Int8WeightOnlyConfig(version=2), filter_fn=chosen)
    return model


# -- more than one device -------------------------------------------------------------------------


@_operation("DistributedDataParallel")
def data_parallel(model: Any, desk: Desk) -> Any:
    """Wrap for data parallel training."""
    from torch.nn.parallel import DistributedDataParallel

    _one_process(desk)
    return DistributedDataParallel(model)


@_operation("fully_shard (FSDP2), one unit")
def sharded(model: Any, desk: Desk) -> Any:
    """Shard the blocks one by one, and embedding and head together in the root's unit."""
    from torch.distributed.fsdp import fully_shard

    mesh = _one_process(desk)
    for block in model.transformer.h:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


@_operation("fully_shard (FSDP2), two units", instead="fully_shard (FSDP2), one unit")
def sharded_apart(model: Any, desk: Desk) -> Any:
    """Shard embedding and head in a unit each."""
    from torch.distributed.fsdp import fully_shard

    mesh = _one_process(desk)
    for part in (model.transformer.wte, model.lm_head):
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _one_process(desk: Desk) -> Any:
    """A group of this process alone, that meets in a file."""
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh

    store = distributed.FileStore(str(desk.folder / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    desk.later.callback(distributed.destroy_process_group)
    return init_device_mesh("cpu", (1,))
