"""Compiled code is run, so it is kept and looked for only where nobody else can write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import watersmeet as wm
from watersmeet.engine.native import load
from watersmeet.model.cache_folder import private_folder


def belongs_to_another(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    uid = os.getuid()
    name = folder.name
    if uid == 0:
        os.chown(folder, 12345, 12345)
        return
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)  # seen by that user it is another's
    folder.rename(folder.with_name(name.replace(str(uid), str(uid + 1))))


def can_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    folder.chmod(0o770)


def is_a_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "elsewhere")


def lies_where_anybody_can_rename_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    folder.parent.chmod(0o777)


BAD = [
    (belongs_to_another, "it belongs to user"), (can_be_written, "others can write to it"), (is_a_link, "it is a link"),
    (lies_where_anybody_can_rename_it, "anybody can rename"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "why"), BAD, ids=lambda x: x.__name__ if callable(x) else "")
def test_a_folder_that_others_could_fill_is_refused_if_it_is_named(
    make: object, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(make)
    named = tmp_path / "cache"
    make(named, monkeypatch)
    monkeypatch.setenv("WATERSMEET_CACHE", str(named))
    with pytest.raises(wm.WatersmeetError, match=why) as e:
        load.folder.__wrapped__()
    assert str(named) in str(e.value) and "WATERSMEET_CACHE" in str(e.value)


@pytest.mark.parametrize("place", ["temporary", "home"])
@pytest.mark.parametrize(("make", "why"), BAD, ids=lambda x: x.__name__ if callable(x) else "")
def test_a_folder_that_others_could_fill_is_passed_by_if_it_is_not(
    make: object, why: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(make)
    monkeypatch.delenv("WATERSMEET_CACHE", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if place == "home":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        bad = tmp_path / "watersmeet"
    else:
        bad = tmp_path / f"watersmeet-{os.getuid()}"
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make(bad, monkeypatch)
    made = private_folder("kernel-x")
    assert bad not in made.parents and made.is_dir() and made.stat().st_mode & 0o777 == 0o700
    if place == "temporary":
        assert made != private_folder("kernel-x"), "a fresh one each time"


def test_a_folder_inside_the_cache_is_looked_at_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATERSMEET_CACHE", str(tmp_path / "cache"))
    made = private_folder("kernel-x")
    assert made == tmp_path / "cache/kernel-x" == private_folder("kernel-x")
    made.chmod(0o777)
    with pytest.raises(wm.WatersmeetError, match=r"kernel-x.*others can write"):
        private_folder("kernel-x")
