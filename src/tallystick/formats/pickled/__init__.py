"""What pickles of torch hold, followed without running any of it."""
