"""Arrays in files."""

import numpy as np
import pytest

import tranship as ts


def test_reshard_there_and_back(tmp_path):
    whole = np.arange(60.0).reshape(6, 10)
    np.save(tmp_path / "a.npy", whole)
    assert ts.inspect(tmp_path / "a.npy").distribution.extents == (6, 10)
    done = []
    report = ts.reshard(
        tmp_path / "a.npy", tmp_path / "parts", to="@ 2x2 : block, cyclic(3)", verify=True,
        progress=lambda now, total: done.append((now, total)),
    )
    assert report["bytes_written"] == 480 and report["verified"] and len(report["checksums"]) == 4
    assert done[-1] == (480, 480)
    ts.reshard(tmp_path / "parts", tmp_path / "b.npy", to=ts.distribution((6, 10), (1, 1), "whole"))
    assert np.array_equal(np.load(tmp_path / "b.npy"), whole)


def test_a_progress_that_raises_ends_the_work(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((100, 100)))

    def progress(now, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        ts.reshard(tmp_path / "a.npy", tmp_path / "b.npy", to="@ 1x1 : whole, whole", progress=progress)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy"]


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(ts.IoError) as error:
        ts.inspect(tmp_path / "none.npy")
    assert isinstance(error.value, OSError) and "none.npy" in str(error.value)
    (tmp_path / "bad.npy").write_bytes(b"not an array")
    with pytest.raises(ts.BadFile):
        ts.inspect(tmp_path / "bad.npy")
    np.save(tmp_path / "a.npy", np.zeros(4))
    with pytest.raises(ts.Error):
        ts.reshard(tmp_path / "a.npy", tmp_path / "b", to="@ 2 : blok")
