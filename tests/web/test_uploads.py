"""Results that somebody drops on the page: what the commands say of them, and nothing that a hostile one wants."""

from __future__ import annotations

import http.client
import io
import json
import re
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from browsers import PATIENCE
from playwright.sync_api import Browser

from .servers import Answer, Server, Visit, check_for_all, followed, serving, uploads_of, violations

pytestmark = pytest.mark.xdist_group("web")

MARK = "xxBOUNDARYxx"
PAGE = json.loads((Path(__file__).parents[1] / "trial.json").read_text())


def result(rate: float) -> bytes:
    document = json.loads(json.dumps(PAGE))
    read = document["jobs"][0]["read"]
    read |= {"iops": rate, "total_ios": int(rate / 2), "io_bytes": 4096 * int(rate / 2), "bw_bytes": int(4096 * rate)}
    read["runtime"] = 500
    return json.dumps(document).encode()


def csrf(server: Server) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', server.ask("/").text)
    assert found is not None
    return found[1]


def upload(server: Server, files: Sequence[tuple[str, bytes]], token: str | None = None, **fields: str) -> Answer:
    parts: list[tuple[str, str | None, bytes]] = [("csrf", None, (csrf(server) if token is None else token).encode())]
    parts += [(name, None, value.encode()) for name, value in fields.items()]
    parts += [("files", name, data) for name, data in files]
    body = b""
    for field, name, data in parts:
        file = f'; filename="{name}"' if name is not None else ""
        body += f'--{MARK}\r\nContent-Disposition: form-data; name="{field}"{file}\r\n\r\n'.encode() + data + b"\r\n"
    kind = {"Content_Type": f"multipart/form-data; boundary={MARK}"}
    return server.ask("/upload", "POST", body + f"--{MARK}--\r\n".encode(), **kind)


def sent(server: Server, *files: tuple[str, bytes], **fields: str) -> str:
    answer = upload(server, files, **fields)
    assert answer.status == 303, answer.text
    return answer.headers["location"]


def kept(cwd: Path) -> set[Path]:
    return set(uploads_of(cwd).glob("iodelta-uploads-*"))


def test_two_files_are_compared_and_more_can_be_added(server: Server, runs: Path) -> None:
    place = sent(server, ("old.json", result(5000)), ("new.json", result(4000)))
    assert server.ask(place).headers["location"] == f"{place}/compare"
    found = server.json(f"{place}/compare")
    assert found["schema"].startswith("iodelta.compare/")
    text = server.ask(f"{place}/compare").text
    assert "-20" in text
    assert str(uploads_of(runs.parent)) not in text
    assert server.json(f"{place}/audit")["schema"].startswith("iodelta.audit")
    more = sent(server, ("third.json", result(4500)), **{"with": place.rpartition("/")[2]})
    assert len(server.json(f"{more}/show")["rows"]) == 3


def test_a_bundle_and_an_experiment_folder_give_their_report(server: Server, runs: Path) -> None:
    (bundle,) = runs.glob("*.iodelta.tar.zst")
    place = sent(server, ("theirs.iodelta.tar.zst", bundle.read_bytes()))
    assert "slower" in server.json(f"{place}/report")["headline"]
    files = [path for path in (runs / "slower").rglob("*") if path.is_file()]
    whole = [(f"runs/slower/{path.relative_to(runs / 'slower')}", path.read_bytes()) for path in files]
    place = sent(server, *whole)
    assert server.ask(place).headers["location"].endswith("/report")
    assert "slower" in server.json(f"{place}/report")["headline"]
    assert server.json(f"{place}/audit")["schema"].startswith("iodelta.audit")


def test_hostile_names_lead_nowhere(server: Server, runs: Path) -> None:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in ("../../escaped.json", "/tmp/escaped.json"):
            member = tarfile.TarInfo(name)
            member.size = len(result(1))
            archive.addfile(member, io.BytesIO(result(1)))
        link = tarfile.TarInfo("passwd.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    names = ("../../../tmp/escaped.json", "/tmp/escaped.json", "a/../../escaped.json", "..", "<img src=x>.json", "-x")
    for name, data in (*((name, result(5000)) for name in names), ("a.tar", tar.getvalue())):
        place = sent(server, (name, data))
        for what in ("show", "audit"):
            answer = server.ask(f"{place}/{what}")
            assert answer.status in (200, 422), name
            assert "root:" not in answer.text
            assert "<img src=x" not in answer.text
    own = [("x/experiment.toml", b""), ("x/journal.jsonl", b""), ("x/raw", b""), ("x/raw/../../../escaped", b"")]
    assert server.ask(sent(server, *own) + "/report").status == 422
    assert not list(Path(tempfile.gettempdir()).glob("escaped*"))
    assert not list(uploads_of(runs.parent).glob("escaped*"))
    lying = [path for root in kept(runs.parent) for path in root.rglob("*escaped*")]
    assert not [path for path in lying if path.suffix not in (".json", "")]


def test_what_is_too_much_not_asked_for_or_anothers_is_refused(server: Server) -> None:
    assert upload(server, [("a.json", result(1))], token="0" * 64).status == 403
    assert upload(server, []).status == 404
    assert upload(server, [(f"{number}.json", b"{}") for number in range(21)]).status == 404
    connection = http.client.HTTPConnection(server.host, server.port)
    connection.request(
        "POST", "/upload", headers={"Content-Length": str(1 << 30), "Content-Type": "multipart/form-data"}
    )
    assert connection.getresponse().status == 413
    connection.close()
    assert server.ask("/upload/nowhere/show").status == 404
    place = sent(server, ("a.json", result(5000)))
    assert server.ask(f"{place}/report").status == 404


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as own:
        sent(own, ("a.json", result(5000)))
        (root,) = kept(tmp_path)
        assert root.stat().st_mode & 0o077 == 0
    assert not root.exists()


def test_a_server_removes_what_a_killed_one_left_and_nothing_of_one_that_runs(tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as killed:
        place = sent(killed, ("a.json", result(5000)))
        (left,) = kept(tmp_path)
        with serving(cwd=tmp_path) as other:
            sent(other, ("b.json", result(5000)))
            assert left.exists()
            assert killed.ask(f"{place}/show").status == 200
        killed.process.kill()
        killed.process.wait()
    assert left.exists()
    with serving(cwd=tmp_path) as later:
        sent(later, ("c.json", result(5000)))
        assert not left.exists()


def test_a_person_chooses_files_with_and_without_scripts_and_drops_them(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    for name, rate in (("old.json", 5000), ("new.json", 4000)):
        (tmp_path / name).write_bytes(result(rate))
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 900})
    context.set_default_timeout(PATIENCE)
    plain = context.new_page()
    plain.goto(server.url)
    plain.get_by_label("Files").set_input_files([tmp_path / "old.json", tmp_path / "new.json"])
    followed(plain, plain.get_by_role("button", name="Look"))
    assert plain.url.endswith("/compare")
    assert "-20" in plain.locator("main").inner_text()
    context.close()
    visit = Visit(browser.new_page(color_scheme="dark"), server.url)
    page = visit.open("/")
    assert violations(page) == []
    dropped = page.evaluate_handle(
        """([old, young]) => {
          const all = new DataTransfer();
          all.items.add(new File([old], "old.json"));
          all.items.add(new File([young], "new.json"));
          return all;
        }""",
        [result(5000).decode(), result(4000).decode()],
    )
    page.dispatch_event("body", "drop", {"dataTransfer": dropped})
    page.wait_for_url("**/compare", timeout=240_000)
    page.wait_for_selector("html[data-charts=drawn]")
    assert "-20" in page.locator("main").inner_text()
    check_for_all(visit, "", opened=True)
    assert visit.wrong == []
    page.close()
