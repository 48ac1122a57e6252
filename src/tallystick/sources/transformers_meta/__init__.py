"""Model types that are not native, built by transformers on the meta device in a process of their own."""
