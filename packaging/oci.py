#!/usr/bin/env python3
"""Make a container image of a root filesystem: an OCI archive of one layer, which podman, docker and skopeo load.

Usage: packaging/oci.py ROOT.tar IMAGE.tar --version V --architecture A

The layout is that of the OCI image specification 1.1; ``manifest.json`` is for docker before version 25.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import zstandard

CHUNK = 1 << 20
MEDIA = "application/vnd.oci.image"


class Archive:
    """Writes blobs under the digest of their bytes, with one time stamp for all."""

    def __init__(self, archive: tarfile.TarFile, seconds: int) -> None:
        self.archive = archive
        self.seconds = seconds

    def file(self, name: str, content: io.BufferedIOBase, size: int) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = size
        entry.mtime = self.seconds
        self.archive.addfile(entry, content)

    def text(self, name: str, document: Any) -> bytes:
        content = json.dumps(document, sort_keys=True).encode()
        self.file(name, io.BytesIO(content), len(content))
        return content

    def blob(self, document: Any) -> dict[str, Any]:
        """Digest and size of a JSON document that is written as a blob."""
        digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
        content = self.text(f"blobs/sha256/{digest}", document)
        return {"digest": f"sha256:{digest}", "size": len(content)}


def compress(root: Path, layer: io.BufferedRandom) -> tuple[str, str]:
    """Write the layer; digests of the file system and of its compressed form."""
    plain = hashlib.sha256()
    with root.open("rb") as source, zstandard.ZstdCompressor(3).stream_writer(layer, closefd=False) as target:
        while chunk := source.read(CHUNK):
            plain.update(chunk)
            target.write(chunk)
    layer.flush()
    layer.seek(0)
    return plain.hexdigest(), hashlib.file_digest(layer, "sha256").hexdigest()


def configuration(version: str, architecture: str, created: str, plain: str) -> dict[str, Any]:
    return {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"],
            "Entrypoint": ["iodelta"],
            "Cmd": ["--help"],
            "WorkingDir": "/work",
            "Labels": {
                "org.opencontainers.image.title": "iodelta",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{plain}"]},
        "history": [{"created": created, "created_by": "packaging/oci.py"}],
    }


def make(root: Path, image: Path, version: str, architecture: str, seconds: int) -> None:
    created = datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    with (
        tempfile.TemporaryFile(dir=image.parent) as layer,
        tarfile.open(image, "w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        archive = Archive(tar, seconds)
        plain, packed = compress(root, layer)
        size = layer.seek(0, os.SEEK_END)
        layer.seek(0)
        archive.file(f"blobs/sha256/{packed}", layer, size)
        config = archive.blob(configuration(version, architecture, created, plain))
        manifest = archive.blob(
            {
                "schemaVersion": 2,
                "mediaType": f"{MEDIA}.manifest.v1+json",
                "config": {"mediaType": f"{MEDIA}.config.v1+json", **config},
                "layers": [
                    {"mediaType": f"{MEDIA}.layer.v1.tar+zstd", "digest": f"sha256:{packed}", "size": size},
                ],
            }
        )
        index = {
            "mediaType": f"{MEDIA}.manifest.v1+json",
            **manifest,
            "platform": {"architecture": architecture, "os": "linux"},
            "annotations": {
                "io.containerd.image.name": f"localhost/iodelta:{version}",
                "org.opencontainers.image.ref.name": version,
            },
        }
        archive.text("index.json", {"schemaVersion": 2, "manifests": [index]})
        archive.text("oci-layout", {"imageLayoutVersion": "1.0.0"})
        older = {
            "Config": f"blobs/sha256/{config['digest'].removeprefix('sha256:')}",
            "RepoTags": [f"localhost/iodelta:{version}"],
            "Layers": [f"blobs/sha256/{packed}"],
        }
        archive.text("manifest.json", [older])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("image", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--architecture", required=True)
    words = parser.parse_args()
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    make(words.root, words.image, words.version, words.architecture, seconds)


if __name__ == "__main__":
    main()
