"""Packages are installed where nothing can be compiled, and iodelta works there: by pipx, and as a package of Debian in
a container image. The image is unpacked by its digests, as the specification of OCI says, not by what made it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from fio_files import write

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
COMPILERS = ("cc", "gcc", "clang", "rustc", "cargo", "make")

pytestmark = [pytest.mark.root, pytest.mark.beside, pytest.mark.timeout(3000), pytest.mark.xdist_group("packages")]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    for program in ("cargo", "dpkg-shlibdeps", "mmdebstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: scripts/setup installs it on Debian, rustup cargo")
    place = tmp_path_factory.mktemp("dist")
    environment = {**os.environ, "IODELTA_DIST": str(place)}
    done = subprocess.run([ROOT / "scripts/package", "all"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    yield place
    shutil.rmtree(place)  # a gigabyte


def run(*words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env=env, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_sdist_makes_a_wheel_that_runs(tmp_path: Path) -> None:
    """Of iodelta alone: every module is in it, and nothing of this checkout is needed."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    [sdist] = tmp_path.glob("*.tar.gz")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    run(*pip, "--target", tmp_path / "there", sdist)
    modules = {path.relative_to(ROOT / "src") for path in (ROOT / "src").rglob("*.py")}
    assert modules == {path.relative_to(tmp_path / "there") for path in (tmp_path / "there/iodelta").rglob("*.py")}
    write(tmp_path / "x.json", 1234)
    words = (tmp_path / "there/bin/iodelta", "show", tmp_path / "x.json")
    assert "1,234" in run(*words, env={"PYTHONPATH": str(tmp_path / "there")})


@pytest.mark.night
def test_the_native_wheel_is_for_every_python_from_3_11_on_and_for_old_systems(dist: Path) -> None:
    [wheel] = dist.glob("iodelta_native-*.whl")
    assert "-cp311-abi3-" in wheel.name
    run(BIN / "abi3audit", "--strict", wheel)
    said = " ".join(run(BIN / "auditwheel", "show", wheel).split())
    assert f'platform tag: "manylinux_2_17_{os.uname().machine}"' in said, said


@pytest.mark.night
def test_an_sdist_holds_what_git_has_and_nothing_else(dist: Path) -> None:
    listed = set(run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines())
    for name, below in (("iodelta", ""), ("iodelta_native", "native/")):
        [file] = dist.glob(f"{name}-*.tar.gz")
        with tarfile.open(file) as archive:
            names = {entry.name.partition("/")[2] for entry in archive if entry.isfile()}
        assert "pyproject.toml" in names
        assert {f"{below}{name}" for name in names - {"PKG-INFO"}} <= listed


@pytest.mark.night
def test_pipx_installs_the_wheel_without_a_compiler(dist: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "env"):
        (tools / name).symlink_to(str(shutil.which(name)))
    assert [name for name in COMPILERS if shutil.which(name, path=str(tools))] == []
    run(
        sys.executable, "-m", "pip", "download", "--quiet", "--dest", dist / "pip", "pip"
    )  # which pipx wants for itself
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": f"{dist / 'wheelhouse'} {dist / 'pip'}",
        "PIP_NO_COMPILE": "1",
    }
    run(BIN / "pipx", "install", "--python", sys.executable, "iodelta[native]", env=environment)
    said = run(tmp_path / "bin/iodelta", "--version", "--verbose", env=environment)
    assert re.search(r"(?m)^iodelta-native \d", said), said
    write(tmp_path / "x.json", 1234)
    assert "1,234" in run(tmp_path / "bin/iodelta", "show", tmp_path / "x.json", env=environment)


def blob(image: Path, digest: str) -> Path:
    kind, digits = digest.split(":")
    file = image / "blobs" / kind / digits
    with file.open("rb") as content:
        assert hashlib.file_digest(content, kind).hexdigest() == digits
    return file


@pytest.fixture(scope="module")
def container(dist: Path) -> Path:
    """The root of a container of the image."""
    [archive] = dist.glob("*.oci.tar")
    image, root = dist / "image", dist / "root"
    root.mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(image, filter="data")
    assert json.loads((image / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    [index] = json.loads((image / "index.json").read_bytes())["manifests"]
    manifest = json.loads(blob(image, index["digest"]).read_bytes())
    config = json.loads(blob(image, manifest["config"]["digest"]).read_bytes())
    [layer] = manifest["layers"]
    file = blob(image, layer["digest"])
    assert file.stat().st_size == layer["size"]
    plain = hashlib.sha256()
    with file.open("rb") as content, zstandard.ZstdDecompressor().stream_reader(content) as stream:
        tar_ = subprocess.Popen(["tar", "--extract", "--directory", root], stdin=subprocess.PIPE)
        assert tar_.stdin is not None
        while chunk := stream.read(1 << 20):
            plain.update(chunk)
            tar_.stdin.write(chunk)
        tar_.stdin.close()
    assert tar_.wait() == 0
    assert config["rootfs"]["diff_ids"] == [f"sha256:{plain.hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["iodelta"]
    return root


def inside(root: Path, *words: str) -> str:
    """What a command in a container prints: its own root, mounts and processes, and no variable of this machine."""
    space = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", f"--root={root}", "--wd=/work"]
    return run(*space, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", *words)


@pytest.mark.night
def test_the_package_of_debian_works_in_the_image_where_there_is_no_compiler(container: Path) -> None:
    which = f"command -v {' '.join(COMPILERS)} pip || true"
    assert inside(container, "sh", "-c", which) == ""
    assert inside(container, "dpkg", "--verify", "iodelta") == ""
    assert inside(container, "dpkg-query", "-W", "-f", "${Status}", "iodelta") == "install ok installed"
    versions = inside(container, "iodelta", "--version", "--verbose")
    assert re.search(r"(?m)^fio 3\.", versions), versions

    told = json.loads(inside(container, "iodelta", "doctor", "--format", "json"))
    missing = {one["what"] for one in told["missing"]}
    assert "git" in missing
    assert not missing & {
        "fio",
        "ssh",
        "sqlalchemy",
        "distributed",
        "vl-convert-python",
        "starlette",
        "iodelta-native",
        "root",
    }

    write(container / "work/x.json", 4321)
    assert "4,321" in inside(container, "iodelta", "show", "x.json")
    page = inside(container, "iodelta", "show", "x.json", "-o", "page.html", "--force")
    assert "svg" in (container / "work/page.html").read_text(), page
    assert "round-robin" in inside(container, "iodelta", "policy", "explain", "round-robin")


@pytest.mark.night
def test_the_package_of_debian_is_small(dist: Path) -> None:
    [package] = dist.glob("iodelta_*.deb")
    assert package.stat().st_size <= 60 << 20


def test_the_wheel_runs_on_every_python_that_is_here(dist: Path, tmp_path: Path) -> None:
    # A shim of pyenv is here for every version that it knows, and ends with an error for one that is not chosen.
    found = [python for minor in range(11, 16) if (python := shutil.which(f"python3.{minor}")) is not None]
    pythons = [
        python for python in found if subprocess.run([python, "-V"], capture_output=True, check=False).returncode == 0
    ]
    assert pythons
    write(tmp_path / "x.json", 1234)
    for number, python in enumerate(pythons):
        place = tmp_path / f"env{number}"
        run(
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "--quiet",
            "--target",
            place,
            *dist.glob("iodelta-*.whl"),
        )
        code = "from iodelta.cli.main import main; main()"
        environment = {**os.environ, "PYTHONPATH": str(place)}
        assert "1,234" in run(python, "-c", code, "show", tmp_path / "x.json", env=environment)
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        assert size <= 150 << 20, "what the core brings"


def test_the_image_says_nothing_of_the_machine_that_made_it(container: Path) -> None:
    assert not (container / "etc/hostname").exists()
    home = container / "usr/lib/iodelta"
    files = [home / "pyvenv.cfg", home / "bin/iodelta", *home.glob("lib/python3*/site-packages/iodelta*.dist-info/*")]
    assert len(files) > 10
    told = [file for file in files if file.is_file() and str(ROOT).encode() in file.read_bytes()]
    assert told == []


@pytest.mark.night
def test_removing_the_package_leaves_nothing(container: Path) -> None:
    inside(container, "dpkg", "--remove", "iodelta")
    assert not (container / "usr/lib/iodelta").exists()
    assert not (container / "usr/bin/iodelta").is_symlink()
