"""``python -m iodelta.report.formats.html``: store the scripts of Vega, Vega-Lite and Vega-Embed that reports carry.

They are stored, not made when a report is written: making them takes 3 s, and a report must be the same bytes whichever
release of vl-convert is installed.
"""

from __future__ import annotations

import re

import vl_convert

from iodelta.report.formats.html.write import HERE

NOTICE = """/*! Vega {vega}, Vega-Lite {lite}, Vega-Embed {embed}: https://vega.github.io
Copyright (c) 2015-2025 University of Washington Interactive Data Lab and contributors. All rights reserved.
With D3 (Copyright 2010-2025 Mike Bostock, ISC). BSD 3-Clause License:
Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
following conditions are met: 1. Redistributions of source code must retain the above copyright notice, this list of
conditions and the following disclaimer. 2. Redistributions in binary form must reproduce the above copyright notice,
this list of conditions and the following disclaimer in the documentation and/or other materials provided with the
distribution. 3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or
promote products derived from this software without specific prior written permission. THIS SOFTWARE IS PROVIDED BY THE
COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE
IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE
COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE, DATA, OR PROFITS; OR
BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN CONTRACT, STRICT LIABILITY, OR TORT
(INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE
POSSIBILITY OF SUCH DAMAGE. */
"""


DROPPED = re.compile(
    r'(,(\w)\.type="pad";else if\((?:(?!;).)*;)(\w+\(\w+\(\w+\(\w\)\)\);)'
)
"""Where Vega-Lite warns that a chart whose rows have a fixed height has no "fit-y", even where only "fit-x" is asked."""


def mended(made: str) -> str:
    """Return the scripts without that warning, which every page would write to the console of its browser."""
    changed, count = DROPPED.subn(r'\1"fit-x"!==\2.type&&\3', made)
    if count != 1:
        raise SystemExit("Vega-Lite warns of a dropped fit in another way than before")
    return changed


def main() -> None:
    """Write ``vega.js``."""
    lite = max(
        vl_convert.get_vegalite_versions(),
        key=lambda version: tuple(map(int, version.split("."))),
    )
    made = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=f"v{lite}"
    )
    if re.search(r"</script|<!--", made, re.IGNORECASE):
        raise SystemExit("the scripts hold text that would end a script element")
    notice = NOTICE.format(
        vega=vl_convert.get_vega_version(),
        lite=lite,
        embed=vl_convert.get_vega_embed_version(),
    )
    (HERE / "vega.js").write_text(notice + mended(made), encoding="utf-8")


if __name__ == "__main__":
    main()
