"""ERNIE 2.0 and 3.0: BERT's tensors, and task type embeddings.

Source: Sun et al. 2019, "ERNIE 2.0: A Continual Pre-training Framework".
"""

from tallystick.architectures.kit.bert import KEYS, embeddings, heads, layers, with_cls
from tallystick.architectures.kit.bert_variants import BERT, IN_ORDER
from tallystick.core import nodes as nn
from tallystick.core.registry import Config, architecture


@architecture("ernie", "ErnieForCausalLM", variants=BERT | IN_ORDER, **KEYS, use_task_id=False, task_type_vocab_size=3)
def ernie(c: Config) -> nn.Model:
    tasks = nn.Embedding(c.task_type_vocab_size, c.hidden_size) if c.use_task_id else None
    summed = embeddings(c, task_type_embeddings=tasks)
    return with_cls(c, "ernie", nn.Module(embeddings=summed, encoder=nn.Module(layer=layers(c, heads(c)))))
