"""What holds of the statement that a thread works for: whether it was cancelled, how large it may be."""
