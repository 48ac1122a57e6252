"""How the sides of one chain of equations are meant."""
