"""The systems that `bamquery bench sql` asks."""
