"""Find each tensor's role from names, shapes and positions if no architecture states it."""
