"""Types that all rooms share: `Dim`, `Entry`, `Ledger`, configs, and modules of architectures."""
