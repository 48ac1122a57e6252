"""Run code in a sealed process with limits, with JSON requests and replies."""
