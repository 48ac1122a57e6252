"""Model types that reuse another family's modules, with other defaults for some keys."""

from tallystick.core.registry import Alias, alias, optional

ALIASES: dict[str, Alias] = {
    # CamemBERT (Martin et al. 2019, "CamemBERT: a Tasty French Language Model").
    "camembert": alias("CamembertForCausalLM", like="roberta", vocab_size=30522),
    # XLM-RoBERTa (Conneau et al. 2019, "Unsupervised Cross-lingual Representation Learning at
    # Scale").
    "xlm-roberta": alias("XLMRobertaForCausalLM", like="roberta", vocab_size=30522),
    # GPT-SW3 (Ekgren et al. 2023, "GPT-SW3: An Autoregressive Language Model for the Nordic
    # Languages").
    "gpt-sw3": alias("GPT2LMHeadModel", like="gpt2"),
    # Falcon Mamba (TII 2024, "Falcon Mamba: The First Competitive Attention-free 7B Language
    # Model"): its additional norms have no parameters.
    "falcon_mamba": alias("FalconMambaForCausalLM", like="mamba"),
    # IQuest-Coder-V1 (IQuest Lab 2026).
    "iquestcoder": alias(
        "LlamaForCausalLM",
        like="llama",
        vocab_size=76800,
        hidden_size=5120,
        intermediate_size=27648,
        num_hidden_layers=80,
        num_attention_heads=40,
        num_key_value_heads=optional(8),
        head_dim=optional(128),
    ),
    # PLBART's decoder (Ahmad et al. 2021, "Unified Pre-training for Program Understanding and
    # Generation").
    "plbart": alias(
        "PLBartForCausalLM",
        like="bart",
        vocab_size=50005,
        decoder_layers=6,
        decoder_ffn_dim=3072,
        decoder_attention_heads=12,
        d_model=768,
        encoder_layers=6,
        encoder_ffn_dim=3072,
        encoder_attention_heads=12,
        num_labels=2,
    ),
}
