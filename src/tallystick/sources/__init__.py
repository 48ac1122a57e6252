"""Sources turn what a person has into a `Ledger`. They know formats, and answer no question."""
