"""SQL expressions as objects: each knows the SQL that it stands for, and the verbs of relations take either.

In comes a name, a Python value or other expressions; out goes text that `bamquery.sql_frontend` binds, so an
object and the SQL that it stands for make the same plan, and errors show that SQL.
"""
