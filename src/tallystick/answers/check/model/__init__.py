"""What a model has, under the names that texts use."""
