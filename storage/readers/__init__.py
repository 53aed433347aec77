"""Files as arrays of blocks, through the page cache or past it."""
