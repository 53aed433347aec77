"""The CPU device: Arrow arrays, pyarrow.compute and Acero."""
