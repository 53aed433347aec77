"""What notebooks and prompts show of a relation."""
