"""What every source has: parts, names, paths, options, errors."""
