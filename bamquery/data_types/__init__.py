"""Arrow types as SQL has them: their names, their groups, their limits. Below all rooms that know types."""
