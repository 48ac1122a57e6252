"""Teaching models: from an embedding with a head to a transformer, as small as possible.

Constructor arguments are the config keys of each blueprint (``architectures/teaching.py``), and
tensor names are the blueprint's. So `count` and `formula` of
``{"model_type": "transformer_lm", ...}`` hold for ``TransformerLM(...)``. The models are for
reading and counting, not for training anything large.

Letters in shapes: B sequences of T tokens, V words in the vocabulary, d the width of the model,
H heads of size h.
"""

from tallystick.models.teaching.attention import MultiHeadAttention, SingleHeadAttention, attend, rotated
from tallystick.models.teaching.feed_forward import MLP, FeedForwardLM, PositionWiseLM
from tallystick.models.teaching.transformer import RotaryTransformerLM, TransformerLayer, TransformerLM
from tallystick.models.teaching.vocabulary import BareBonesLM, Embedding

__all__ = [
    "MLP",
    "BareBonesLM",
    "Embedding",
    "FeedForwardLM",
    "MultiHeadAttention",
    "PositionWiseLM",
    "RotaryTransformerLM",
    "SingleHeadAttention",
    "TransformerLM",
    "TransformerLayer",
    "attend",
    "rotated",
]  # fmt: skip
