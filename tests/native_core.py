"""Whether tests of the native core can run: only where there is no cargo to build it do they skip."""

from __future__ import annotations

import shutil

import pytest

from iodelta.probe.native import installed

needs_native_core = pytest.mark.skipif(
    not installed() and shutil.which("cargo") is None,  # with cargo, scripts/setup has built it: absence is a failure
    reason="needs the native core, and there is no cargo to build it (see scripts/setup)",
)
