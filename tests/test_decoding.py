"""JSON is read by several threads at once, through a guard; ruff refuses what goes around it (TID251)."""

from __future__ import annotations

import subprocess
import sys

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
