"""What each tensor is for, where no architecture says it: found by names, shapes and places."""
