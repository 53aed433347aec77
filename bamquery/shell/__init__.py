"""`bamquery DB` on a terminal: statements typed by people, and what makes that pleasant.

Nothing here that the prompt needs imports the engine: it is imported while the first statement is typed.
"""
