"""Functions of dates, times, timestamps."""
