"""Steps as calls of numpy, each for all of their rows."""
