"""One model as several libraries lay it out: compare says that it is the same, and only what really
differs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import drawing
import tallystick
from checkpoints import write
from reference import build

VOCABULARY = 101
Shapes = dict[str, tuple[int, ...]]


def module(shapes: Mapping[str, tuple[int, ...]]) -> nn.Module:
    """A module with parameters of these names, which holds no values."""
    root = nn.Module()
    for name, shape in shapes.items():
        *above, last = name.split(".")
        holder = root
        for word in above:
            if word not in dict(holder.named_children()):
                holder.add_module(word, nn.Module())
            holder = holder.get_submodule(word)
        holder.register_parameter(last, nn.Parameter(torch.empty(shape, device="meta")))
    return root


def total(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def causes(a: object, b: object) -> dict[str, int]:
    """What each kind of cause adds, after asking that all of them sum to the gap."""
    answer = tallystick.compare(a, b)
    assert sum(cause.parameters for cause in answer.causes) == answer.gap == answer.total_b - answer.total_a
    kinds: dict[str, int] = {}
    for cause in answer.causes:
        kinds[cause.cause] = kinds.get(cause.cause, 0) + cause.parameters
    return kinds


def said(a: object, b: object) -> list[str]:
    return [cause.what for cause in tallystick.compare(a, b).causes]


# -- experts --------------------------------------------------------------------------------------


def experts(layout: str, e: int, f: int, d: int) -> Shapes:
    """The experts of one layer by names relative to it, as somebody's library has them."""
    gated = {"gate": (f, d), "up": (f, d), "down": (d, f)}
    listed = {
        "hf_old": ("block_sparse_moe.experts.{}.", {"gate": "w1", "up": "w3", "down": "w2"}),
        "lightning": ("mlp.experts.{}.", {"gate": "fc_1", "up": "fc_2", "down": "proj"}),
        "deepseek": ("mlp.experts.{}.", {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}),
        "odd": ("moe.experts.{}.", {"gate": "lin_a", "up": "lin_b", "down": "lin_c"}),
    }
    if layout in listed:
        front, words = listed[layout]
        return {f"{front.format(n)}{words[slot]}.weight": shape for n in range(e) for slot, shape in gated.items()}
    return {
        "fast": {
            "block_sparse_moe.cond_ffn.w1": (e, f, d),
            "block_sparse_moe.cond_ffn.w2": (e, d, f),
            "block_sparse_moe.cond_ffn.w3": (e, f, d),
        },
        "stacked": {"mlp.experts.gate_up_proj": (e, 2 * f, d), "mlp.experts.down_proj": (e, d, f)},
        "turned": {"mlp.experts.gate_up_proj": (e, d, 2 * f), "mlp.experts.down_proj": (e, f, d)},
        "numbered": {"mlp.mlp1_weight": (e, 2 * f, d), "mlp.mlp2_weight": (e, d, f)},
        "flat": {
            "ffn.experts.mlp.w1": (e * f, d), "ffn.experts.mlp.v1": (e * f, d), "ffn.experts.mlp.w2": (e * f, d)
        },
    }[layout]  # fmt: skip


LAYOUTS = ("hf_old", "lightning", "deepseek", "odd", "fast", "stacked", "turned", "numbered", "flat")


def mixture(layout: str, e: int, f: int, d: int, layers: int = 2) -> Shapes:
    shapes: Shapes = {"tok_embeddings.weight": (VOCABULARY, d)}
    for layer in range(layers):
        block = {
            "attn_norm.weight": (d,),
            **{f"attn.{word}_proj.weight": (d, d) for word in "qkvo"},
            "mlp_norm.weight": (d,),
            "mlp.router.weight": (e, d),
            **experts(layout, e, f, d),
        }
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in block.items()}
    return {**shapes, "norm.weight": (d,), "lm_head.weight": (VOCABULARY, d)}


@pytest.mark.parametrize("one", LAYOUTS)
@given(data=st.data())
@drawing.drawn(12)
def test_experts_are_the_same_however_they_are_stored(one, data):
    other = data.draw(st.sampled_from(LAYOUTS))
    e, d = data.draw(st.integers(2, 9)), 4 * data.draw(st.integers(2, 8))
    f = data.draw(st.integers(3, 40))
    a, b = mixture(one, e, f, d), mixture(other, e, f, d)
    assert total(a) == total(b)
    same = one == other or {one, other} in (
        {"turned", "stacked"},
        {"numbered", "stacked"},
        {"turned", "numbered"},
        {"fast", "flat"},
    )
    same = same or {one, other} <= {"hf_old", "lightning", "deepseek", "odd"}  # other names, and nothing else
    assert causes(module(a), module(b)) == ({} if same else {"projections-fused": 0}), (one, other, e, f, d)
    for what in said(module(a), module(b)):
        assert " are the same, " in what


def test_stacked_experts_are_said_to_be_so():
    sizes = (4, 24, 16)
    assert said(module(mixture("stacked", *sizes)), module(mixture("fast", *sizes))) == [
        "w1, w3 and gate_up_proj are the same, split in B (Module)"
    ]
    assert said(module(mixture("deepseek", *sizes)), module(mixture("stacked", *sizes)))[1] == (
        "gate_proj, up_proj and gate_up_proj are the same, fused and stacked in B (Module)"
    )


def test_a_mixtral_of_transformers_is_the_one_of_other_libraries(tmp_path):
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 56, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "num_local_experts": 6}
    theirs = build({"model_type": "mixtral", "pad_token_id": None, **sizes, **heads})
    for layout in LAYOUTS:
        ours = mixture(layout, 6, 56, 32)
        assert set(causes(theirs, module(ours)).values()) <= {0}
        write(tmp_path / f"{layout}.safetensors", ours)
        assert set(causes(tmp_path / f"{layout}.safetensors", theirs).values()) <= {0}


@given(data=st.data())
@drawing.drawn(25)
def test_more_experts_and_wider_ones_are_still_these_causes(data):
    one, other = (data.draw(st.sampled_from([name for name in LAYOUTS if name != "flat"])) for _ in "ab")
    e, more, d = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 4)), 8 * data.draw(st.integers(1, 4))
    kinds = causes(module(mixture(one, e, 2 * d, d)), module(mixture(other, e + more, 2 * d, d)))
    assert kinds.pop("experts") == 2 * more * (3 * 2 * d * d + d)  # experts, and the rows of their routers
    assert set(kinds.values()) <= {0}


def test_a_module_of_experts_is_no_single_mlp():
    dense = {name: shape for name, shape in mixture("fast", 4, 24, 16).items() if "cond_ffn" not in name}
    dense = {name: shape for name, shape in dense.items() if "router" not in name}
    dense |= {
        f"layers.{n}.mlp.{w}.weight": (24, 16)[:: 1 if w != "w2" else -1] for n in (0, 1) for w in ("w1", "w2", "w3")
    }
    for layout in LAYOUTS:
        there = said(module(mixture(layout, 4, 24, 16)), module(mixture("deepseek", 4, 24, 16)))
        assert not any("dense MLP" in what for what in there)
    assert "dense MLP (B (Module) only)" in said(module(mixture("deepseek", 4, 24, 16)), module(dense))


# -- attention ------------------------------------------------------------------------------------

SPLIT = {
    "nano": ("c_q", "c_k", "c_v", "c_proj"),
    "hf": ("q_proj", "k_proj", "v_proj", "o_proj"),
    "meta": ("wq", "wk", "wv", "wo"),
    "lucid": ("to_q", "to_k", "to_v", "to_out"),
    "annotated": ("w_qs", "w_ks", "w_vs", "fc"),
    "linear": ("q_linear", "k_linear", "v_linear", "out"),
    "book": ("W_query", "W_key", "W_value", "out_proj"),
    "words": ("query", "key", "value", "output"),
    "before": ("proj_q", "proj_k", "proj_v", "proj_o"),
}
EXTRA: dict[str, tuple[int, ...]] = {
    "ve_gate.weight": (2, 12),
    "lamb": (2,),
    "q_norm.weight": (8,),
    "k_norm.weight": (8,),
}


def attentive(
    words: tuple[str, ...], d: int, extra: Mapping[str, tuple[int, ...]] = {}, *, bias: bool = False
) -> Shapes:
    shapes: Shapes = {"wte.weight": (VOCABULARY, d)}
    for layer in range(3):
        front = f"h.{layer}"
        for word in words:
            out = 3 * d if word in ("c_attn", "qkv", "Wqkv") else d
            shapes[f"{front}.attn.{word}.weight"] = (out, d)
            if bias:
                shapes[f"{front}.attn.{word}.bias"] = (out,)
        shapes |= {f"{front}.attn.{name}": shape for name, shape in extra.items()}
        shapes |= {f"{front}.mlp.c_fc.weight": (4 * d, d), f"{front}.mlp.c_proj.weight": (d, 4 * d)}
    return {**shapes, "lm_head.weight": (VOCABULARY, d)}


@pytest.mark.parametrize("words", SPLIT)
@pytest.mark.parametrize("fused", ["c_attn", "qkv", "Wqkv"])
@given(data=st.data())
@drawing.drawn(4)
def test_what_else_an_attention_has_does_not_hide_that_it_is_split(words, fused, data):
    d = 8 * data.draw(st.integers(2, 9))
    extra = {name: EXTRA[name] for name in data.draw(st.sets(st.sampled_from(sorted(EXTRA))))}
    bias = data.draw(st.booleans())
    whole = attentive((fused, "c_proj"), d, bias=bias)
    split = attentive(SPLIT[words], d, extra)
    answer = tallystick.compare(module(whole), module(split))
    [same] = [cause for cause in answer.causes if cause.cause == "projections-fused"]
    assert same.what == f"{', '.join(SPLIT[words][:3])} and {fused} are the same, split in B (Module)"
    assert answer.gap == total(split) - total(whole) == sum(cause.parameters for cause in answer.causes)
    differing = {cause.what: cause.parameters for cause in answer.causes if cause.parameters}
    assert differing.pop("biases (A (Module) only)", 0) == -3 * 4 * d * bias
    assert sum(differing.values()) == 3 * sum(map(math.prod, extra.values()))


def test_heads_in_a_dimension_of_their_own_are_the_same():
    """As TransformerLens has them: a matrix for each head."""
    d, heads = 24, 4
    a = attentive(("q_proj", "k_proj", "v_proj", "o_proj"), d)
    b = {name.replace("_proj.weight", ""): shape for name, shape in a.items() if "attn" in name}
    b = {name.replace(".attn.", ".attn.W_"): (heads, d, d // heads) for name in b}
    b |= {name: shape for name, shape in a.items() if "attn" not in name}
    assert set(causes(module(a), module(b)).values()) <= {0}
    assert causes(module(attentive(("c_attn", "c_proj"), d)), module(b)) == {"projections-fused": 0}


# -- ties -----------------------------------------------------------------------------------------


def tied(shapes: Shapes) -> nn.Module:
    model = module(shapes)
    model.lm_head.weight = model.wte.weight
    return model


def test_a_model_that_never_was_tied_is_not_said_to_be_so_no_longer():
    a, b = attentive(("c_attn", "c_proj"), 16), attentive(("wq", "wk", "wv", "wo"), 16)
    lost = "lm_head.weight is not tied to wte.weight, unlike in A (Module)"
    assert lost in said(tied(a), module(b))
    assert causes(tied(a), module(b)) == {"tie-lost": VOCABULARY * 16, "projections-fused": 0}
    assert "lm_head.weight is tied to wte.weight, unlike in A (Module)" in said(module(a), tied(b))


def test_one_that_is_meant_to_be_tied_no_longer_is():
    model = build({"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": VOCABULARY})
    whole = build({"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": VOCABULARY})
    model.lm_head = nn.Sequential(nn.Linear(16, VOCABULARY, bias=False))
    assert said(whole, model) == ["lm_head.0.weight is no longer tied to transformer.wte.weight"]
    assert said(model, whole) == ["lm_head.weight is now tied to transformer.wte.weight"]


# -- layers that are numbered apart, and weights that are stored twice ----------------------------


def numbered_apart(depth: int, d: int) -> Shapes:
    shapes: Shapes = {"token_emb.emb.weight": (VOCABULARY, d)}
    for block in range(depth):
        attention, mlp = f"layers.{2 * block}", f"layers.{2 * block + 1}"
        shapes |= {f"{attention}.norm.weight": (d,), f"{mlp}.norm.weight": (d,)}
        shapes |= {f"{attention}.attn.to_{word}.weight": (d, d) for word in ("q", "k", "v", "out")}
        shapes |= {f"{mlp}.ff.0.weight": (4 * d, d), f"{mlp}.ff.2.weight": (d, 4 * d)}
    return {**shapes, "lm_head.weight": (VOCABULARY, d)}


def numbered_together(depth: int, d: int) -> Shapes:
    shapes: Shapes = {"wte.weight": (VOCABULARY, d)}
    for block in range(depth):
        front = f"h.{block}"
        shapes |= {f"{front}.ln_1.weight": (d,), f"{front}.ln_2.weight": (d,)}
        shapes |= {f"{front}.attn.c_attn.weight": (3 * d, d), f"{front}.attn.c_proj.weight": (d, d)}
        shapes |= {f"{front}.mlp.c_fc.weight": (4 * d, d), f"{front}.mlp.c_proj.weight": (d, 4 * d)}
    return {**shapes, "lm_head.weight": (VOCABULARY, d)}


@given(st.integers(2, 9), st.integers(2, 9), st.integers(2, 8))
@drawing.drawn(25)
def test_attention_and_mlp_numbered_by_turns_are_one_layer(depth, other, eighths):
    d = 8 * eighths
    a, b = module(numbered_together(depth, d)), module(numbered_apart(other, d))
    of_a_block = 12 * d * d + 2 * d
    assert causes(a, b) == {
        "projections-fused": 0,
        **({"layers": (other - depth) * of_a_block} if other != depth else {}),
    }
    if other != depth:
        assert f"layers {depth} → {other}" in said(a, b)
        assert said(module(numbered_apart(depth, d)), b) == [f"layers {depth} → {other}"]


def latent(depth: int, heads: int, rank: int, *, again: str) -> Shapes:
    """Attention as DeepSeek's with what raises keys and values from their latent in one matrix,
    split, or both.
    """
    nope, values, d = 6, 4, 32
    whole = {"attn_kv_b.weight": (heads * (nope + values), rank)}
    split = {"attn_k_b.weight": (heads * rank, nope), "attn_v_b.weight": (heads * values, rank)}
    stacked = {"attn_k_b.weight": (heads, rank, nope), "attn_v_b.weight": (heads, values, rank)}
    block = {
        "attn_q.weight": (heads * (nope + 2), d),
        "attn_kv_a_mqa.weight": (rank + 2, d),
        **({} if again == "alone" else whole),
        **{"whole": {}, "both": split, "stacked": stacked, "alone": stacked}[again],
        "attn_output.weight": (d, heads * values),
        **{f"ffn_{word}.weight": (40, d) for word in ("gate", "up")},
        "ffn_down.weight": (d, 40),
    }
    return {
        "token_embd.weight": (VOCABULARY, d),
        **{f"blk.{n}.{name}": shape for n in range(depth) for name, shape in block.items()},
        "output.weight": (VOCABULARY, d),
    }


@pytest.mark.parametrize("again", ["both", "stacked"])
@pytest.mark.parametrize(("depth", "heads", "rank"), [(2, 4, 8), (3, 8, 16), (5, 2, 12)])
def test_what_a_file_stores_twice_is_a_cause_of_that_name(tmp_path, again, depth, heads, rank):
    from gguf_files import F32, written

    paths = {}
    for kind in ("whole", again, "alone"):
        tensors = {
            name: (tuple(reversed(shape)), F32) for name, shape in latent(depth, heads, rank, again=kind).items()
        }
        paths[kind] = written(tmp_path / f"{kind}.gguf", tensors, {"general.architecture": "deepseek2"})
    twice = depth * heads * (6 + 4) * rank
    assert causes(paths["whole"], paths[again]) == {"stored-twice": twice}
    assert said(paths["whole"], paths[again]) == [
        f"attn_k_b and attn_v_b in {paths[again]} (a second copy of attn_kv_b)"
    ]
    assert causes(paths[again], paths["whole"]) == {"stored-twice": -twice}
    assert causes(paths["whole"], paths["alone"]) == {"projections-fused": 0}


DEEPSEEK = {
    "model_type": "deepseek_v3", "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 40,
    "moe_intermediate_size": 12, "num_hidden_layers": 3, "first_k_dense_replace": 1, "num_attention_heads": 4,
    "num_key_value_heads": 4, "q_lora_rank": 16, "kv_lora_rank": 8, "qk_nope_head_dim": 6, "qk_rope_head_dim": 2,
    "v_head_dim": 4, "n_routed_experts": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
}  # fmt: skip


def deepseek_gguf(*, twice: bool) -> Shapes:
    """The tensors of llama.cpp's files of DeepSeek-V3, by its names."""
    attention = {
        "attn_norm": (32,), "attn_q_a": (16, 32), "attn_q_a_norm": (16,), "attn_q_b": (32, 16), "attn_kv_a_mqa": (10, 32),
        "attn_kv_a_norm": (8,), "attn_kv_b": (40, 8), "attn_output": (32, 16), "ffn_norm": (32,),
    }  # fmt: skip
    attention |= {"attn_k_b": (32, 6), "attn_v_b": (16, 8)} if twice else {}
    dense = {"ffn_gate": (40, 32), "ffn_up": (40, 32), "ffn_down": (32, 40)}
    sparse = {
        "ffn_gate_inp": (8, 32), "ffn_gate_exps": (8, 12, 32), "ffn_up_exps": (8, 12, 32), "ffn_down_exps": (8, 32, 12),
        "ffn_gate_shexp": (12, 32), "ffn_up_shexp": (12, 32), "ffn_down_shexp": (32, 12),
    }  # fmt: skip
    blocks = {
        f"blk.{n}.{name}": shape for n in range(3) for name, shape in (attention | (sparse if n else dense)).items()
    }
    whole = {"token_embd": (VOCABULARY, 32), **blocks, "output_norm": (32,), "output": (VOCABULARY, 32)}
    return {f"{name}.weight": shape for name, shape in whole.items()}


@pytest.mark.parametrize("twice", [False, True])
def test_a_deepseek_of_llama_cpp_is_that_of_transformers(tmp_path, twice):
    from gguf_files import F32, written

    tensors = {name: (tuple(reversed(shape)), F32) for name, shape in deepseek_gguf(twice=twice).items()}
    path = written(tmp_path / "a.gguf", tensors, {"general.architecture": "deepseek2"})
    kinds = causes(build({**DEEPSEEK, "pad_token_id": None}), path)
    assert kinds.pop("stored-twice", 0) == twice * 3 * 4 * (6 + 4) * 8
    assert set(kinds.values()) <= {0}
    for source in (DEEPSEEK, path):
        assert causes(source, build({**DEEPSEEK, "pad_token_id": None})).keys() <= {"projections-fused", "stored-twice"}
