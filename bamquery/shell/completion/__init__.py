"""What could follow where the cursor is: words of the dialect, names, files, commands.

In come the text before the cursor and what is known of the database; out go candidates, best first.
"""
