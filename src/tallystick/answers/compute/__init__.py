"""FLOPs of a forward and backward pass, and the time that a device needs for them."""
