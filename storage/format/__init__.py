"""What bytes of a fragment mean: types, layout, Arrow's metadata."""
