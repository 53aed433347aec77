"""What stands in FROM, to plans with a scope over their columns."""
