"""What a serving engine will hold and log: its memory at start, and the requests it serves."""
