"""A relation's rows as other libraries' frames, arrays and tensors, and as Python values."""
