"""JSON is read by several threads at once, and no type is read around the guard that makes that safe."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "iodelta"
UNGUARDED = {"msgspec.convert", "msgspec.json.Decoder"}
TYPED = UNGUARDED | {"msgspec.json.decode"}

# Types that no thread has met, each met by eight threads at the same moment; `together` is how they read.
CROWD = """
import sys, threading
import msgspec

{together}
sys.setswitchinterval(1e-6)
for number in range(100):
    inner = msgspec.defstruct(f"Inner{{number}}", [("a", int), ("b", dict[str, float])])
    fields = [(f"x{{field}}", tuple[inner, ...] | None, None) for field in range(30)]
    outer = msgspec.defstruct(f"Outer{{number}}", fields)
    gate = threading.Barrier(8)

    def read(position):
        gate.wait()
        if position % 2:
            found = by_text(b'{{"x1": [{{"a": 1, "b": {{"c": 2}}}}]}}', outer)
        else:
            found = by_value({{"x1": [{{"a": 1, "b": {{"c": 2}}}}]}}, outer)
        assert found.x1[0].b == {{"c": 2.0}}

    threads = [threading.Thread(target=read, args=(position,)) for position in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("read")
"""


def test_threads_may_meet_a_type_together() -> None:
    guarded = "from iodelta.decoding import converted as by_value, from_json as by_text"
    done = subprocess.run([sys.executable, "-c", CROWD.format(together=guarded)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "read\n", "")


def around(tree: ast.AST) -> Iterator[int]:
    """Lines that let msgspec build what it knows of a type without the guard."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        typed = any(word.arg == "type" for word in node.keywords)
        if ast.unparse(function) in (TYPED if typed else UNGUARDED):
            yield node.lineno


def test_only_the_guard_makes_decoders() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "decoding.py":
            found += [f"{path.relative_to(SOURCE)}:{line}" for line in around(ast.parse(path.read_text()))]
    assert found == []


def test_the_check_sees_what_it_is_for() -> None:
    text = "msgspec.json.decode(x)\nmsgspec.json.decode(x, type=K)\nmsgspec.convert(x, K)\nmsgspec.json.Decoder[K](K)\n"
    assert list(around(ast.parse(text))) == [2, 3, 4]
