"""Paths that no database can be opened at: a StorageError that names them, whatever the system says."""

import os

import pytest

import bamquery


@pytest.mark.parametrize("create", [None, True, False])
@pytest.mark.parametrize("name", ["x" * 300, "x\0y", "sub/" * 2000 + "x", "loop/x", "file/x"])
def test_a_path_that_the_system_refuses_is_a_storage_error(tmp_path, name, create):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    with pytest.raises(bamquery.StorageError):
        bamquery.connect(f"{tmp_path}/{name}", create=create)


def test_a_folder_that_may_not_be_searched_is_a_storage_error(tmp_path, monkeypatch):
    real = os.stat

    def refuse(path, *rest, **options):
        if "db" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **options)

    (tmp_path / "db").mkdir()
    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(bamquery.StorageError, match="Permission denied"):
        bamquery.connect(tmp_path / "db")
