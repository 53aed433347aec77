"""Programs: expressions and aggregates as a few typed instructions, for devices to compile or interpret."""
