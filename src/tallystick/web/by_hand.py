"""GPT-2 counted by hand as a book would lay it out, with one mistake: the text of a story."""

BY_HAND = r"""## 4.3 How many parameters does it have?

The model has a vocabulary of 50,257 tokens, 1,024 positions, a width of 768, and 12 layers.

The embeddings come first. Tokens and positions need

$$50257 \times 768 + 1024 \times 768 = 39{,}383{,}808$$

A layer has four square matrices in its attention. Its MLP has two, and is four times as wide:

$$4 \times 768^2 = 2{,}359{,}296$$

$$2 \times 768 \times 3072 = 4{,}718{,}592$$

All layers together have

$$12 \times (2{,}359{,}296 + 4{,}718{,}592) = 84{,}943{,}656$$

so that the total is 39,383,808 + 84,943,656 = 124,327,464.
"""
