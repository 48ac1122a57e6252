"""Types that all rooms share: `Dim`, `Entry`, `Ledger`, `Config` and an architecture's modules."""
