"""Code run apart from this process: sealed off, within limits, asked and answered in JSON."""
