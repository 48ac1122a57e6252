"""One answer of each kind, made without torch."""

import tallystick
from tallystick.answers.fit_all import fit_all
from tallystick.answers.memory.sweep import sweep
from tallystick.live.survive import Survival, Survived

DERIVATION = "Token embedding: 50257 × 768 = 38,596,416\nTotal: 38,596,416 + 85,842,432 = 124,438,848\n? × 3 = 4"
ROW = Survived("torch.compile", "torch", "what it does", "kept", "tied", "tied", 0, "same", "one tensor")

ANSWERS = {
    "Ledger": lambda: tallystick.count("gpt2"),
    "Formula": lambda: tallystick.formula("gpt2"),
    "Comparison": lambda: tallystick.compare("gpt2", "llama-2-7b"),
    "Reconciliation": lambda: tallystick.reconcile("gpt2", "163M"),
    "Check": lambda: tallystick.check(DERIVATION, against="gpt2"),
    "Memory": lambda: tallystick.memory("gpt2", mode="training", batch=8, device="h100"),
    "Sweep": lambda: sweep(tallystick.count("gpt2"), [64, 256, 1024], mode="training"),
    "Fit": lambda: tallystick.fit("llama-3-70b", "h100"),
    "FitAll": lambda: fit_all(tallystick.count("gpt2"), ["bfloat16"]),
    "FitEngine": lambda: tallystick.fit_engine("llama-3.1-8b", "vllm", ["l4", "h100"], max_model_len=8192),
    "Serve": lambda: tallystick.serve("llama-3.1-8b", engine="vllm", device="h100", max_model_len=8192),
    "Compute": lambda: tallystick.compute("gpt2", device="h100", tokens="1B", mfu=0.4),
    "Ties": lambda: tallystick.ties("gpt2"),
    "Survival": lambda: Survival({"torch": "2.6"}, (ROW,), "gpt2", ("a note",)),
}
