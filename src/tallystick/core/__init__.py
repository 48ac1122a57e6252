"""Types that all rooms share: `Dim`, `Entry`, `Ledger`, `Config` and model blueprints."""
