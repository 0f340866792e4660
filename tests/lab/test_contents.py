"""Whatever lies on a device or in a file: it is written to only by name, and the plan says what would be lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from images import IMAGES, Build
from test_guard import HERE, allowed, on_devices, refusal
from workshop import Workshop

from iodelta.lab.guard import held_by
from iodelta.probe.topology import resolve


@on_devices
@pytest.mark.parametrize(("build", "said"), IMAGES.values(), ids=IMAGES.keys())
def test_a_device_is_written_only_by_name_whatever_lies_on_it(workshop: Workshop, build: Build, said: str) -> None:
    image = workshop.place / "image"
    build(image)
    node, other = workshop.loop(image), workshop.loop(1)
    before = Workshop.checksum(node)
    why = refusal(node, other)
    assert said in why
    assert "which is not the target" in why
    assert any(said in lifted for lifted in allowed(node, node))
    assert Workshop.checksum(node) == before


@pytest.mark.parametrize(("build", "said"), IMAGES.values(), ids=IMAGES.keys())
def test_a_file_is_written_only_by_name_whatever_lies_in_it(tmp_path: Path, build: Build, said: str) -> None:
    path, other = tmp_path / "image", tmp_path / "other"
    build(path)
    other.touch()
    why = refusal(path, other)
    assert said in why
    assert "which is not the target" in why


@pytest.mark.parametrize("name", ["all zero", "qcow2", "text in the middle"])
def test_the_plan_says_what_a_write_would_destroy(tmp_path: Path, name: str) -> None:
    build, said = IMAGES[name]
    path = tmp_path / "image"
    build(path)
    before = Workshop.checksum(path)
    assert held_by(HERE, resolve(HERE, str(path))) == said
    assert any(said in lifted for lifted in allowed(path, path))
    assert Workshop.checksum(path) == before


def test_an_empty_file_is_written_only_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert "was not made by iodelta (an empty file)" in refusal(tmp_path / "empty")
    assert allowed(tmp_path / "empty", tmp_path / "empty")
