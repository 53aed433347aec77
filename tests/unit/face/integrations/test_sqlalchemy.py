"""SQLAlchemy's dialect: engines, definitions, reflection, statements."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import orm

import bamquery
import bamquery.integrations.sqlalchemy as dialect


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"bamquery:///{tmp_path / 'db'}")
    yield made
    made.dispose()


def test_a_temporary_database_is_one_for_all_connections() -> None:
    engine = sa.create_engine("bamquery://")
    with engine.begin() as con:
        con.execute(sa.text("CREATE TABLE t AS SELECT 1 AS a"))
    seen: list[Any] = []

    def look() -> None:
        with engine.connect() as con:
            seen.extend(con.execute(sa.text("FROM t")).all())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(60)
    assert seen == [(1,)]
    engine.dispose()


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = sa.create_engine("bamquery:///here.bq?threads=1&memory_limit=512MB")
    with engine.connect() as con:
        native = con.connection.driver_connection.native_connection
        assert native.settings.threads == 1
    engine.dispose()
    assert (tmp_path / "here.bq").is_dir()
    with pytest.raises(sa.exc.ProgrammingError, match="memory_limit"):
        sa.create_engine("bamquery://?memory_limt=1GB").connect()
    with pytest.raises(sa.exc.OperationalError, match="absent"):
        sa.create_engine("bamquery:///absent.bq?create=false").connect()
    with pytest.raises(sa.exc.ArgumentError, match="three slashes"):
        sa.create_engine("bamquery://taxi.bq").connect()


def test_types_there_and_back(engine: sa.Engine) -> None:
    columns: dict[str, tuple[Any, Any]] = {
        "tiny": (dialect.TINYINT(), -3),
        "small": (sa.SmallInteger(), 300),
        "i": (sa.Integer(), 70_000),
        "big": (sa.BigInteger(), 2**62),
        "u8": (dialect.UTINYINT(), 255),
        "u16": (dialect.USMALLINT(), 2**16 - 1),
        "u32": (dialect.UINTEGER(), 2**32 - 1),
        "u64": (dialect.UBIGINT(), 2**64 - 1),
        "huge": (dialect.HUGEINT(), 10**37),
        "yes": (sa.Boolean(), True),
        "single": (sa.REAL(), 0.5),
        "double": (sa.Float(), 0.1),
        "exact": (sa.Numeric(12, 3), Decimal("123.456")),
        "s": (sa.String(20), "é'\"%:x?"),
        "text": (sa.Text(), "long"),
        "blob": (sa.LargeBinary(), b"\x00\xff"),
        "day": (sa.Date(), datetime.date(2024, 2, 29)),
        "at": (sa.Time(), datetime.time(1, 2, 3, 4)),
        "ts": (sa.DateTime(), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
        "tz": (sa.DateTime(timezone=True), datetime.datetime(2024, 2, 29, 1, tzinfo=datetime.UTC)),
        "ts_s": (dialect.TIMESTAMP_S(), datetime.datetime(2024, 2, 29, 1)),
        "ts_ns": (dialect.TIMESTAMP_NS(), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
        "id": (sa.Uuid(), uuid.UUID(int=2**100)),
        "color": (sa.Enum("red", "green", name="color"), "red"),
    }
    meta = sa.MetaData()
    table = sa.Table("all types", meta, *(sa.Column(name, kind) for name, (kind, _) in columns.items()))
    meta.create_all(engine)
    row = {name: value for name, (_, value) in columns.items()}
    with engine.begin() as con:
        con.execute(table.insert(), row)
        con.execute(table.insert(), [row, dict.fromkeys(row)])
        rows = con.execute(sa.select(table)).all()
        assert [row._asdict() for row in rows] == [row, row, dict.fromkeys(row)]
        for name in ("s", "blob", "day", "ts", "id", "exact", "u64"):
            assert con.scalar(sa.select(sa.func.count()).where(table.c[name] == row[name])) == 2
    reflected = sa.Table("all types", sa.MetaData(), autoload_with=engine)
    again = sa.MetaData()
    reflected.to_metadata(again, name="copy")
    again.create_all(engine)
    inspector = sa.inspect(engine)
    kinds, copied = (
        {column["name"]: column["type"].compile(engine.dialect) for column in inspector.get_columns(name)}
        for name in ("all types", "copy")
    )
    assert copied == kinds
    assert kinds["tz"] == "TIMESTAMP WITH TIME ZONE"
    assert kinds["exact"] == "DECIMAL(12, 3)"
    assert kinds["u64"] == "UBIGINT"


def test_intervals_are_for_expressions(engine: sa.Engine) -> None:
    day = datetime.timedelta(days=1, seconds=2)
    with engine.connect() as con:
        moment = sa.cast(sa.literal("2024-01-01"), sa.DateTime())
        assert con.scalar(sa.select(moment + day)) == datetime.datetime(2024, 1, 2, 0, 0, 2)
        assert con.scalar(sa.select((moment + day) - moment)) == day
        literal = sa.select(sa.literal(day, sa.Interval())).compile(
            engine, compile_kwargs={"literal_binds": True}
        )
        assert con.exec_driver_sql(str(literal)).scalar() == day
    with pytest.raises(sa.exc.CompileError, match="INTERVAL"):
        sa.Table("t", sa.MetaData(), sa.Column("a", sa.Interval())).create(engine)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (sa.Column("a", sa.Integer, primary_key=True), "PRIMARY KEY"),
        (sa.Column("a", sa.Integer, unique=True), "UNIQUE"),
        (sa.Column("a", sa.Integer, sa.ForeignKey("other.a")), "FOREIGN KEY"),
        (sa.Column("a", sa.Integer, sa.CheckConstraint("a > 0")), "CHECK"),
        (sa.Column("a", sa.Integer, index=True, unique=True), "UNIQUE index of a"),
    ],
)
def test_constraints_are_refused_or_left_out_if_told_so(
    engine: sa.Engine, tmp_path: Path, column: Any, words: str
) -> None:
    meta = sa.MetaData()
    sa.Table("other", meta, sa.Column("a", sa.Integer))
    table = sa.Table("t", meta, column)
    with pytest.raises(sa.exc.CompileError, match=rf"{words}.*omit_constraints=True"):
        table.create(engine)
    assert not sa.inspect(engine).has_table("t")
    lenient = sa.create_engine(f"bamquery:///{tmp_path / 'db'}", omit_constraints=True)
    meta.create_all(lenient)
    assert sa.inspect(lenient).get_columns("t")[0]["nullable"] == (words != "PRIMARY KEY")
    lenient.dispose()


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (sa.Column("a", sa.Integer, sa.Identity()), "IDENTITY"),
        (sa.Column("a", sa.Integer, sa.Computed("1 + 1")), "generated"),
        (sa.Column("a", sa.Numeric), "without digits"),
        (sa.Column("a", sa.JSON), "JSON"),
        (sa.Column("a", sa.UUID), "UUID"),
        (sa.Column("a", sa.Time(timezone=True)), "TIME WITH TIME ZONE"),
    ],
)
def test_what_cannot_be_made_is_refused(engine: sa.Engine, column: Any, words: str) -> None:
    with pytest.raises(sa.exc.CompileError, match=words):
        sa.Table("t", sa.MetaData(), column).create(engine)


def test_an_index_is_left_out_with_a_warning(engine: sa.Engine) -> None:
    with pytest.warns(sa.exc.SAWarning, match=r'index "ix_t_a" is not made.*zone maps'):
        sa.Table("t", sa.MetaData(), sa.Column("a", sa.Integer, index=True)).create(engine)
    assert sa.inspect(engine).get_indexes("t") == []


def test_the_orm_with_constraints_left_out(tmp_path: Path) -> None:
    class Base(orm.DeclarativeBase):
        pass

    class Trip(Base):
        __tablename__ = "trips"
        id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
        fare: orm.Mapped[float | None]

    engine = sa.create_engine(f"bamquery:///{tmp_path / 'db'}", omit_constraints=True)
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Trip(id=number, fare=number / 2) for number in range(5)])
        session.commit()
        assert session.scalars(sa.select(Trip.fare).where(Trip.id > 2).order_by(Trip.id)).all() == [1.5, 2.0]
    engine.dispose()


def test_reflection(engine: sa.Engine) -> None:
    with engine.begin() as con:
        con.execute(sa.text("CREATE TABLE Trips (a INTEGER NOT NULL DEFAULT 3, \"B c\" VARCHAR DEFAULT 'x')"))
        con.execute(sa.text("CREATE VIEW v AS SELECT a FROM trips"))
        con.execute(sa.text("CREATE TABLE gone AS SELECT 1 AS a"))
        con.execute(sa.text("CREATE VIEW broken AS FROM gone"))
        con.execute(sa.text("DROP TABLE gone"))
    inspector = sa.inspect(engine)
    assert inspector.default_schema_name == "main"
    assert inspector.get_schema_names() == ["main"]
    assert inspector.get_table_names() == inspector.get_table_names(schema="main") == ["Trips"]
    assert sorted(inspector.get_view_names()) == ["broken", "v"]
    assert inspector.get_table_names(schema="other") == []
    assert inspector.has_table("trips")
    assert inspector.has_table("TRIPS", schema="main")
    assert not inspector.has_table("trips", schema="other")
    assert inspector.get_view_definition("v") == "SELECT a FROM trips"
    first, second = inspector.get_columns("trips")
    assert (first["name"], first["nullable"], first["default"]) == ("a", False, "3")
    assert (second["name"], second["nullable"], second["default"]) == ("B c", True, "'x'")
    assert inspector.get_pk_constraint("trips")["constrained_columns"] == []
    assert inspector.get_foreign_keys("trips") == inspector.get_unique_constraints("trips") == []
    for missing in (inspector.get_columns, inspector.get_pk_constraint, inspector.get_view_definition):
        with pytest.raises(sa.exc.NoSuchTableError):
            missing("absent")
    with pytest.raises(sa.exc.UnreflectableTableError, match="broken"):
        inspector.get_columns("broken")


def test_statements(engine: sa.Engine) -> None:
    meta = sa.MetaData()
    t = sa.Table("t", meta, sa.Column("a", sa.Integer), sa.Column("select", sa.String))
    meta.create_all(engine)
    with engine.begin() as con:
        assert con.execute(t.insert(), [{"a": i, "select": f"x{i}"} for i in range(6)]).rowcount == 6
        word = t.c["select"]
        query = sa.select(t.c.a).order_by(t.c.a.desc())
        assert con.scalars(query.limit(2).offset(1)).all() == [4, 3]
        assert con.scalars(query.offset(5)).all() == [0]
        assert con.scalars(query.where(t.c.a.in_([]))).all() == []
        assert con.scalars(query.where(t.c.a.in_([1, 2]))).all() == [2, 1]
        assert con.scalars(query.where(word.regexp_match("x[01]"))).all() == [1, 0]
        assert con.scalars(query.where(~word.regexp_match("X[0-4]", flags="i"))).all() == [5]
        assert con.scalars(query.where(word.ilike("X5"))).all() == [5]
        assert con.scalar(sa.select(word.regexp_replace("[x0]", "-")).where(t.c.a == 0)) == "--"
        assert con.scalar(sa.select(t.c.a / 2).where(t.c.a == 5)) == 2.5
        assert con.scalar(sa.select(sa.func.aggregate_strings(word, "+")).where(t.c.a < 2)) == "x0+x1"
        assert con.scalar(sa.select(sa.try_cast(word, sa.Integer)).limit(1)) is None
        window = sa.func.row_number().over(order_by=t.c.a.desc())
        assert con.execute(sa.select(t.c.a, window).order_by(window).limit(1)).one() == (5, 1)


def test_what_bamquery_lacks_is_an_error(engine: sa.Engine) -> None:
    t = sa.Table("t", sa.MetaData(), sa.Column("a", sa.Integer))
    t.create(engine)
    with engine.connect() as con:
        with pytest.raises(sa.exc.NotSupportedError):
            con.execute(t.update().values(a=1))
        with pytest.raises(sa.exc.InvalidRequestError, match="savepoints"):
            con.begin_nested()
        con.commit()


def test_errors_keep_bamquerys_own(engine: sa.Engine) -> None:
    with engine.connect() as con, pytest.raises(sa.exc.ProgrammingError) as caught:
        con.execute(sa.text("SELECT absent"))
    assert isinstance(caught.value.orig, bamquery.dbapi.ProgrammingError)
    assert isinstance(caught.value.orig.__cause__, bamquery.SqlError)


def test_every_statement_commits_and_a_rollback_says_so(engine: sa.Engine) -> None:
    with engine.connect() as con:
        assert con.get_isolation_level() == con.default_isolation_level == "AUTOCOMMIT"
        con.execute(sa.text("CREATE TABLE t AS SELECT 1 AS a"))
        with pytest.warns(sa.exc.SAWarning, match="undoes nothing"):
            con.rollback()
    with pytest.warns(sa.exc.SAWarning, match="undoes nothing"), engine.connect() as con:
        con.execute(sa.text("INSERT INTO t VALUES (2)"))
    with engine.connect() as con:  # without a warning
        assert con.scalar(sa.text("SELECT count(*) FROM t")) == 2
    with engine.begin() as con:
        con.execute(sa.text("INSERT INTO t VALUES (3)"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as con:
        con.execute(sa.text("INSERT INTO t VALUES (4)"))
    with pytest.raises(sa.exc.ArgumentError, match="AUTOCOMMIT"):
        engine.connect().execution_options(isolation_level="SERIALIZABLE")


def test_rows_stream(engine: sa.Engine) -> None:
    with engine.connect() as con:
        rows = con.execute(sa.text("FROM range(1000000000000)"))
        assert rows.fetchmany(2) == [(0,), (1,)]
        rows.close()


def test_a_closed_connection_is_made_anew(engine: sa.Engine) -> None:
    with engine.connect() as con:
        con.connection.driver_connection.close()
        with pytest.raises(sa.exc.InterfaceError, match="closed"):
            con.execute(sa.text("SELECT 1"))
    with engine.connect() as con:
        assert con.scalar(sa.text("SELECT 1")) == 1
