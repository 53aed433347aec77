"""Real NVMe drives: which there are, handing them to user space, and testing them there."""
