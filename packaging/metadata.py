"""The README of a package: on a page that shows it alone, links into the repository must be whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    """Give the package the README with absolute links: pages of files, and the files of pictures."""

    def update(self, metadata: dict[str, Any]) -> None:
        home = metadata["urls"]["Source"]

        def whole(link: re.Match[str]) -> str:
            text, place = link.groups()
            kind = "raw" if text.startswith("!") else "blob"
            return f"{text}({home}/{kind}/v{metadata['version']}/{place})"

        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(!?\[[^\]]*\])\((?!#|[a-z]+:)([^)]+)\)", whole, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
