"""Steps of few rows as Python functions: a frame costs more to make than a handful of rows to compute."""
