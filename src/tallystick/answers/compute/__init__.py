"""Operations of a forward and backward pass, and how long a device takes for them."""
