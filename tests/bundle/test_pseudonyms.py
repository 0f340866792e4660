"""Identities by their look: found wherever they stand, and nothing else taken for one."""

from __future__ import annotations

import json

import pytest

from iodelta.bundle.identity import of_document
from iodelta.bundle.pseudonyms import Pseudonyms, nameless

LOOKS = (
    ("/dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K0XXXXXX-part2", "/dev/disk/by-id/disk-1-part2"),
    ("/dev/disk/by-id/dm-name-vg\\\\x2dhome", "/dev/disk/by-id/disk-1"),
    ("/dev/disk/by-uuid/3A1B-77FC", "/dev/disk/by-uuid/serial-1"),
    ("/dev/disk/by-label/ernst-backup", "/dev/disk/by-label/label-1"),
    ("root=PARTUUID=9d2c1a44-02 quiet", "root=PARTUUID=serial-1 quiet"),
    ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "serial-1"),
    ("eui.0025388811b2c3d4", "serial-1"),
    ("naa.5000c500a1b2c3d4", "serial-1"),
    ("wwn-0x5000c500a1b2c3d4", "serial-1"),
    ("nqn.2014.08.org.nvmexpress:uuid:x", "serial-1"),
    ("iqn.1993-08.org.debian:01:abc", "serial-1"),
    ("nvme.144d-533447584e-53616d73756e67", "serial-1"),
    ("LVM-Q2yXl5a0V3kR7n1TzYb8cWd4eFg6hJiKQ2yXl5a0V3kR7n1TzYb8cWd4eFg6hJiK", "serial-1"),
    ("7d3f0a1b2c3d4e5f60718293a4b5c6d7", "machine-1"),
    ("link/ether 52:54:00:12:34:56 brd", "link/ether mac-1 brd"),
    ("via 192.0.2.2/24", "via ip-1/24"),
    ("at [2001:db8::17]:22", "at [ip-1]:22"),
    ("at fe80::fc:ff:fe00:1", "at ip-1"),
    ("built by ernst@blofeld for all", "built by address-1 for all"),
    ("/home/ernst/plans/disk.img", "/home-1"),
    ("cd /root/secret; ls", "cd /home-1; ls"),
    ("on /run/media/ernst/stick", "on /home-1"),
    ('"hostname" : "blofeld"', '"hostname" : "host-1"'),
)

NONE = (
    *("0000:00:04.0", "12:34:56", "nvme0n1", "/dev/nvme0n1p2", "fio-3.33", "6.18.1-rc1", "127.0.0.1", "::1", "1.2.3"),
    *("bssplit=4k/50:8k/50", "--cpus_allowed=0-3,8", "/sys/block/sda/queue/scheduler", "/dev/shm/iodelta-work-x"),
    *("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "iodelta-scratch", "pid 300.1.2"),
    *(
        "/dev/shm/x",
        "/dev/ublkb0",
        "/dev/block/8:0",
        "plan.json",
        "percent: 99.99",
        "nohz_full=2-5",
        "pass 3 of 4",
        "a=b:c",
    ),
    *(
        "user 12.5 ms",
        "io_uring_sqe",
        "key=value",
        "fio.io",
        "token ring",
        "bw=12.3.4",
        "5000000000000000",
        "serialize_overlap=1",
    ),
    *("/usr/lib/root/x", "disk.nvme0n1.read_ios", "0x5", "mean 1234567890", "std::string", "home", "/etc/rooted/x"),
)


@pytest.mark.parametrize(("text", "wanted"), LOOKS)
def test_an_identity_is_known_by_its_look(text: str, wanted: str) -> None:
    assert Pseudonyms({}).text(text) == wanted


@pytest.mark.parametrize("text", NONE)
def test_what_only_looks_a_little_like_one_is_left_alone(text: str) -> None:
    assert Pseudonyms({}).text(text) == text


def test_a_name_is_found_in_any_text_but_not_inside_another_word() -> None:
    names = Pseudonyms({"blofeld": "host name", "S5GX": "serial"})
    found = names.text("blofeld: blofeld-2, blofelds, xblofeld, WD_S5GX")
    assert found == "host-1: host-1-2, blofelds, xblofeld, WD_serial-1"


def test_the_longest_name_is_taken() -> None:
    names = Pseudonyms({"blofeld": "host name", "blofeld.example.org": "host name"})
    assert names.text("blofeld.example.org and blofeld") == "host-1 and host-2"


def test_removing_twice_removes_nothing_more() -> None:
    names = Pseudonyms({"blofeld": "host name"})
    once = [names.text(text) for text, _ in LOOKS]
    assert [Pseudonyms({"blofeld": "host name"}).text(text) for text in once] == once


def test_numbers_are_no_serial_numbers_unless_they_stand_as_one() -> None:
    document = {"serial": "4096", "bs": "4096", "bytes": 4096, "text": "read 4096 bytes"}
    names = Pseudonyms(of_document(document))
    assert names.document(document) == {"serial": "serial-1", "bs": "4096", "bytes": 4096, "text": "read 4096 bytes"}


def test_a_document_stays_valid_json_whatever_names_are_in_it() -> None:
    document = {"host": {"name": 'a"b\\c'}, "note": 'at a"b\\c', "path": '/home/x"y/z', "by_id": ["/dev/disk/by-id/q"]}
    found = Pseudonyms(of_document(document)).document(document)
    assert json.loads(json.dumps(found)) == found
    assert 'a"b' not in json.dumps(found)


def test_machines_do_not_differ_by_their_names() -> None:
    one = {"host": {"name": "blofeld"}, "kernel": {"version": "6.1 (a@blofeld)"}, "target": {"serial": "XYZ12345"}}
    other = {"host": {"name": "host-3"}, "kernel": {"version": "6.1 (address-2)"}, "target": {"serial": "serial-9"}}
    assert nameless(one) == nameless(other)
