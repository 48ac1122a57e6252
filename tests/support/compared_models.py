"""Sizes of the small GPT-2 and the small Llama that tests compare with others."""

D, VOCABULARY, POSITIONS, LAYERS = 48, 97, 32, 4
SMALL = {"vocab_size": VOCABULARY, "n_positions": POSITIONS, "n_embd": D, "n_layer": LAYERS, "n_head": 4}
LLAMA = {"vocab_size": 100, "hidden_size": D, "intermediate_size": 72, "num_attention_heads": 4, "num_hidden_layers": 2}
