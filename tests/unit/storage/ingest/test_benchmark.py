import json

import pyarrow.parquet as pq

from bamquery.storage.ingest.benchmark import main, write_trips


def test_the_file_it_makes(tmp_path):
    write_trips(tmp_path / "x.parquet", 2500)
    metadata = pq.read_metadata(tmp_path / "x.parquet")
    assert (metadata.num_rows, metadata.num_columns) == (2500, 19)
    write_trips(tmp_path / "y.parquet", 2500)
    assert pq.read_table(tmp_path / "x.parquet") == pq.read_table(tmp_path / "y.parquet")


def test_table_and_json(tmp_path, capsys):
    assert (
        main(
            ["--rows", "2e3", "--repeat", "2", "--folder", str(tmp_path), "--json", str(tmp_path / "r.json")]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "2,000 rows" in printed
    assert "ratio" in printed
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["rows"] == 2000
    assert len(report["copy_seconds"]) == len(report["ingest_seconds"]) == 2
    assert report["machine"]["cores"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_a_given_file(tmp_path, capsys):
    write_trips(tmp_path / "x.parquet", 100)
    main(["--file", str(tmp_path / "x.parquet"), "--repeat", "1", "--folder", str(tmp_path)])
    assert "100 rows" in capsys.readouterr().out
    assert (tmp_path / "x.parquet").exists()
