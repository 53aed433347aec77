"""What other libraries need to speak to BamQuery: SQLAlchemy's dialect, Ibis's backend."""
