"""SQLAlchemy's own tests of dialects, run by test_sqlalchemy_suite.py in a process of their own."""
