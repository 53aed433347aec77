"""Physical operators, one a file, written once against the device protocol."""
