"""How a column is read for some rows, by what each way costs on this device."""
