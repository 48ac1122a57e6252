"""Read a model's config: its keys, its class and its model type."""
