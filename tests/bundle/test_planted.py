"""Identities planted wherever a folder keeps text, looked for in the bytes that travel, by no pattern of iodelta's."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from carried import ENVIRONMENT, QUESTION, carried, forge, plain
from click.testing import CliRunner
from pages import whole as whole_page

from iodelta.bundle import pseudonyms
from iodelta.bundle.identity import MODULES, WORDS, reduced
from iodelta.bundle.packed import Packed
from iodelta.bundle.packing import pack
from iodelta.bundle.pseudonyms import PATTERNS, Pseudonyms
from iodelta.cli.main import cli
from iodelta.lab.folder import Failed, Folder, KnobSaved, Rebooted
from iodelta.lab.record import RECORD, Record
from iodelta.report.derived import load
from iodelta.study.confounders import differences

RECORDED = {
    "host name": "krakatoa",
    "FQDN": "krakatoa.deep-lab.example.org",
    "disk serial": "ZR5A7PLANTED",
    "WWN": "naa.5000c500deadbea7",
    "label": "orca-backup",
    "mount point": "/mnt/orca-vault",
    "VG and LV": "orcavg-secretlv",
    "NFS server": "nasquid",
    "NFS export": "/export/orca-payroll",
    "backing file": "/home/orcauser/disk images/one.img",
    "backing file elsewhere": "/srv/orca payroll/two.img",
    "boot id": "5d0c9f6e-77aa-4c1f-8e7e-0badcafe1234",
}
"""What iodelta records of a machine as a name; it may stand in any text."""

PLANTED: dict[str, tuple[str, ...]] = {
    "IPv4 before a colon": ("203.0.113.41:/export", "203.0.113.41"),
    "IPv4 before a dot": ("asked 203.0.113.42.", "203.0.113.42"),
    "IPv4 in ip=": ("ip=203.0.113.43::203.0.113.1:255.255.255.0::eth0:off", "203.0.113.43"),
    "IPv4 of a port": ("203.0.113.44:4420", "203.0.113.44"),
    "IPv4 of nvme-tcp": ("traddr=203.0.113.45,trsvcid=4420", "203.0.113.45"),
    "IPv4 in a name": ("host_203.0.113.46_a", "203.0.113.46"),
    "IPv4 of a cloud": ("ip-203-0-113-47", "203-0-113-47"),
    "nfsroot": ("nfsroot=203.0.113.48:/srv/nfs,vers=4", "203.0.113.48"),
    "IPv6": ("2001:db8:77::1",),
    "IPv6 with a zone": ("fe80::fc54:ff:fe00:77%eth0", "fe80::fc54"),
    "IPv6 in brackets": ("[2001:db8:77::2]:3260", "2001:db8:77::2"),
    "IPv6 before a dot": ("from 2001:db8:77::3.", "2001:db8:77::3"),
    "MAC": ("52:54:00:77:88:99",),
    "MAC after a name": ("ifname=eth0:52:54:00:77:88:9a", "52:54:00:77:88:9a", "77:88:9a"),
    "MAC with dashes": ("52-54-00-77-88-9b",),
    "Infiniband GUID": ("80:00:02:08:fe:80:00:00:00:00:00:00:50:6b:4b:03:00:77:88:99", "4b:03:00:77"),
    "FC WWPN": ("10:00:00:90:fa:77:88:99", "90:fa:77:88"),
    "UUID": ("3f2504e0-4f89-41d3-9a0c-0305e8277331", "0305e8277331"),
    "UUID escaped": (r"3f2504e0\x2d4f89\x2d41d3\x2d9a0c\x2d0305e8277332", "0305e8277332"),
    "UUID of a FAT": ('UUID="7A1B-77FC"', "7A1B-77FC"),
    "label quoted": ('LABEL="orca archive"', "orca archive"),
    "EUI": ("eui.0025388877b2c3d4", "0025388877b2c3d4"),
    "NQN": ("nqn.2019-08.com.orcacorp:nvme:pool77", "orcacorp", "pool77"),
    "IQN": ("iqn.1993-08.com.orcacorp:01:7788", "01:7788"),
    "multipath wwid": ("3600508b1001c77887788990011223344",),
    "raw WWN": ("5000c50077a1b2c3",),
    "machine-id": ("77e3b0c44298fc1c149afbf4c8996fb9",),
    "serial of smartctl": ("Serial Number:    S5GX77PLANTED", "S5GX77PLANTED"),
    "serial of udev": ("ID_SERIAL_SHORT=WD77PLANTED", "WD77PLANTED"),
    "DMI serial": ("System Serial Number: PF77PLANT", "PF77PLANT"),
    "email": ("orca.whale@deep-lab.example", "orca.whale", "deep-lab"),
    "home": ("/home/orcawhale/jobs/a.fio", "orcawhale"),
    "user in id": ("uid=1077(orcawhale)", "orcawhale"),
    "user of a mount": ("username=orcawhale", "orcawhale"),
    "CIFS password": ("password=Wha1eS0ng77", "Wha1eS0ng77"),
    "CIFS domain": ("domain=ORCACORP", "ORCACORP"),
    "credentials file": ("credentials=/etc/orca.cred", "orca.cred"),
    "password in a URL": ("https://orcauser:Wha1eS0ng78@store.deep-lab.example/x", "Wha1eS0ng78", "orcauser"),
    "token in a URL": ("https://store.deep-lab.example/get?token=t0k3n77abcdef&x=1", "t0k3n77"),
    "signature in a URL": ("https://store.deep-lab.example/get?X-Amz-Signature=51g77abcdef", "51g77"),
    "bearer": ("Authorization: Bearer b34r3r77abcdef", "b34r3r77"),
    "AWS key": ("AKIA77ORCAWHALE77ABC", "AKIA77"),
    "JWT": ("eyJhbGciOi77.eyJzdWIiOi77.c2lnbmF0dXJl77", "eyJzdWIiOi77"),
    "SSH key": ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI77orca", "AAAAI77orca"),
    "mapper": ("/dev/mapper/orcavg77-lv_root", "orcavg77"),
    "volume": ("/dev/orcavg77/lv_swap", "lv_swap"),
    "md name": ("/dev/md/orcahost:77", "orcahost"),
    "zvol": ("/dev/zvol/orcapool77/vol", "orcapool77"),
    "NFS in a mount table": ("nas77:/export/orca on /mnt/x type nfs4 (rw)", "nas77", "/export/orca"),
    "CIFS in a mount table": ("//files77/orcashare /mnt/y cifs rw 0 0", "files77", "orcashare"),
    "FQDN in a text": ("cannot reach dbwhale77.orcacorp.internal now", "dbwhale77", "orcacorp"),
    "docker id": (
        "/system.slice/docker-77aa77bb77cc77dd77ee77ff77aa77bb77cc77dd77ee77ff77aa77bb77cc77dd.scope",
        "77aa77bb77cc",
    ),
    "pod id": ("kubepods-burstable-pod77f25040_4f89_41d3_9a0c_0305e8277333.slice", "77f25040"),
    "overlay id": (
        "upperdir=/var/lib/docker/overlay2/77aa77bb77cc77dd77ee77ff77aa77bb77cc77dd77ee77ff/diff",
        "77aa77bb",
    ),
    "disk by its id": ("/dev/disk/by-id/ata-ORCA_77PLANT-part1", "ORCA_77PLANT"),
    "private key": ("-----BEGIN PRIVATE KEY----- MIIEvORCA77 -----END PRIVATE KEY-----", "MIIEvORCA77"),
    "password of a mount": ("pass=Wha1eS0ng79", "Wha1eS0ng79"),
    "disk by its UUID": ("/dev/disk/by-uuid/7A1B-77FD", "7A1B-77FD"),
    "disk by its label": ("/dev/disk/by-label/orca-arch77", "orca-arch77"),
    "label in fstab": ("LABEL=orcaplain77", "orcaplain77"),
    "host in a result": ("hostname=whalehost77", "whalehost77"),
    "host in JSON": ('"hostname" : "whalehost78"', "whalehost78"),
    "home of root": ("/root/orca77/jobs.fio", "orca77"),
    "container of a pod": (
        "cri-containerd-77aa77bb77cc77dd77ee77ff77aa77bb77cc77dd77ee77ff77aa77bb77cc77de.scope",
        "77aa77bb77cc77dd77ee77ff77aa77bb77cc77dd77ee77ff77aa77bb77cc77de",
    ),
    "NVMe wwid": ("nvme.144d-533547583737504c414e54-53414d53554e47-00000001", "533547583737504c414e54"),
    "LVM id": ("LVM-77OrcaPlantedIdOfAVolumeGroup77abcdefghij", "77OrcaPlantedIdOfAVolumeGroup77abcdefghij"),
    "docker scope": ("docker-77ab77bb77cc77dd77ee77ff77aa77bb77cc77dd77ee77ff77aa77bb77cc77dd.scope", "77ab77bb77cc"),
    "path of a file": ("/srv/orcapay77/disk.img", "orcapay77"),
    "path after a colon": ("filename=/data/orcapay78/a:/data/orcapay79/b", "orcapay78", "orcapay79"),
    "path in a message": ("fio: cannot open '/opt/orcapay80/x.img', or /var/tmp/orcapay81", "orcapay80", "orcapay81"),
    "FQDN in a URL": ("asked http://dbwhale78.orcacorp.internal", "dbwhale78"),
    "LDAP": ("bind as uid=orcadoe77,ou=People,dc=orcacorp77,dc=example", "orcadoe77", "orcacorp77"),
    "user of a domain": ("user OrcaCorp78\\orcadoe78", "OrcaCorp78", "orcadoe78"),
    "home of Windows": ("C:\\Users\\orca82\\jobs", "orca82"),
    "password of mysql": ("mysqlslap -uroot -porcapw78", "orcapw78"),
    "fingerprint": ("host key SHA256:77abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP", "77abcdefgh"),
    "GlusterFS in a mount table": ("gfs77node:/orcavol77 on /mnt/z type fuse.glusterfs (rw)", "gfs77node", "orcavol77"),
    "user of Ceph": ("203.0.113.60:6789:/ on /mnt/c type ceph (rw,name=orcaclient77,acl)", "orcaclient77"),
    "host of a mount": ("rw,host=orcafiler77,port=2049", "orcafiler77"),
    "serial after SN": ("SN: S4EWNX0R770077", "S4EWNX0R770077"),
    "serial after S/N": ("Samsung S/N S4EWNX0R770078", "S4EWNX0R770078"),
    "token of GitHub": ("github_pat_11ORCA77abcdefghijklmnop", "11ORCA77"),
    "key of Google": ("AIza77orca-abcdefghijklmnopqrstuvwxyz01", "77orca-abc"),
    "key of Stripe": ("sk_live_77orcaabcdef", "77orcaabcdef"),
    "key with dashes": ("sk-live-77orcaabcdef", "live-77orca"),
    "key of a model": ("sk-proj-77orcaabcdefghijklmnop", "proj-77orca"),
    "token of Hugging Face": ("hf_77orcaABCDEFGHIJKLMNOP", "hf_77orca"),
    "token of npm": ("npm_77orcaABCDEFGHIJKLMNOPQRSTUVWXYZ", "npm_77orca"),
    "token of Vault": ("hvs.77orcaABCDEFGHIJKLMNOP", "hvs.77orca"),
    "WWN after scsi": ("scsi-35000c500a1b27702", "5000c500a1b27702"),
    "MAC without colons": ("hwaddr 525400778877", "525400778877"),
    "MAC with dots": ("learned 5254.0077.8878", "5254.0077.8878"),
    "host of a database": ("jdbc:postgresql://orcadb77:5432/bench", "orcadb77"),
    "password as the next word": ("tool --password orcapw80 go", "orcapw80"),
    "key as the next element": ('["tool", "--api-key", "orcakey81"]', "orcakey81"),
    "user and password": ("curl -u orcabob82:orcapw82 x", "orcabob82", "orcapw82"),
    "password of sshpass": ("sshpass -p orcapw83 ssh h", "orcapw83"),
    "password of an archive": ("7z x -porcapw84 a.7z", "orcapw84"),
    "password in netrc": ("machine orcanas85 login orcajoe85 password orcapw85", "orcanas85", "orcajoe85", "orcapw85"),
    "webhook": ("https://hooks.slack.com/services/T0ORCA86/B0/orcaxyz86", "orcaxyz86"),
    "name of a patch": ("Signed-off-by: Orca Whale87 <x>", "Whale87"),
    "home by tilde": ("cd ~orcajoe88/data", "orcajoe88"),
    "domain and user": ("as ORCACORP89\\orcajoe89 ran", "ORCACORP89", "orcajoe89"),
    "host in syslog": ("Nov 29 05:00:01 orcahost90 kernel: nvme0: up", "orcahost90"),
    "interface by its MAC": ("if enx0011223344aa up", "enx0011223344aa"),
    "serial of nvme-cli": ('{"sn" : "S5GXORCA92"}', "S5GXORCA92"),
    "serial of lsblk": ('NAME="sda" SERIAL="S5GX,ORCA93"', "S5GX,ORCA93"),
    "WWN of smartctl": ("LU WWN Device Id: 5 0014ee 2b1234594", "2b1234594"),
    "WWPN": ("port 0x10000090fa778895", "0x10000090fa778895"),
    "UUID in capitals": ("id 3F2504E04F8941D39A0C0305E8277396", "3F2504E04F8941D39A0C0305E8277396"),
    "host of a public suffix": ("vault97.orcaprod.acme.io up", "vault97"),
    "host of a suffix in a URL": ("asked https://orcaci98.dev now", "orcaci98"),
}
"""What no field records, in the surroundings in which programs print it, and what of it tells, if not all."""

LOOKS = {kind: text for kind, (text, *_) in PLANTED.items()}

SECRET: dict[str, tuple[str, ...]] = {
    **{kind: (text,) for kind, text in RECORDED.items()},
    "backing file elsewhere": ("orca payroll", "two.img"),
    **{kind: tuple(secrets) or (text,) for kind, (text, *secrets) in PLANTED.items()},
}

COMMAND_LINE = (
    "BOOT_IMAGE=/vmlinuz root=/dev/mapper/orcavg77-lv_root ro mitigations=off isolcpus=managed_irq,2-5 "
    "nvme.poll_queues=4 "
    "rd.iscsi.username=orcauser rd.iscsi.password=Wha1eS0ng79 rd.iscsi.initiator=iqn.1993-08.com.orcacorp:01:7789 "
    'inst.ks=http://203.0.113.49/ks?token=t0k3n78 note="orca quiet whale" hostname=krakatoa transparent_hugepage=never '
    "ip=203.0.113.50::203.0.113.1:255.255.255.0:krakatoa:eth0:off nvme.hostid=orca -- --key k3y77"
)
LEFT_OUT = [
    "rd.iscsi",
    "Wha1eS0ng79",
    "t0k3n78",
    "203.0.113.49",
    "203.0.113.50",
    "k3y77",
    "orca quiet",
    "inst.ks",
    "hostid",
]


def planted(path: Path) -> Folder:
    """A folder in which each of them stands in every place that holds text."""
    sentence = "; ".join([*RECORDED.values(), *LOOKS.values()])
    toml = sentence.replace("\\", "\\\\").replace('"', '\\"')
    text = QUESTION.format(path="/mnt/orca-vault/test.img", blocks=1).replace("Is slow slower?", f"Is it? {toml}")
    command = msgspec.json.encode(["sh", "-c", f"true # {sentence}"]).decode()
    text = f"# {sentence}\n{text}\n[condition.loaded]\nbackground = {command}\n"
    folder = carried(path, text=text, blocks=1, end=None)
    environment: dict[str, Any] = {
        **ENVIRONMENT,
        "host": {**ENVIRONMENT["host"], "name": RECORDED["FQDN"]},
        "kernel": {**ENVIRONMENT["kernel"], "command_line": COMMAND_LINE},
        "target": {
            **ENVIRONMENT["target"],
            "serial": "ZR5A7PLANTED",
            "wwid": RECORDED["WWN"],
            "mount": "/mnt/orca-vault",
        },
        "filesystem": {"btrfs.label": "orca-backup", "source": "nasquid:/export/orca-payroll", "options": "rw,hard"},
        "devices": [
            {"name": "dm-0", "dm.name": "orcavg-secretlv"},
            {"name": "loop0", "loop.backing_file": RECORDED["backing file"]},
            {"name": "loop1", "loop.backing_file": RECORDED["backing file elsewhere"]},
        ],
        "now": {"boot_id": RECORDED["boot id"], "note": sentence},
    }
    folder.write_struct("environment.json", environment)
    reboot = {
        "knob": "kernel",
        "target": "/dev/x",
        "values": [["way", "kexec"], ["cmdline", COMMAND_LINE]],
        "boot": "b",
    }
    reboot["values"].append(["restore", msgspec.json.encode(["sh", "-c", f"kexec '{COMMAND_LINE}'"]).decode()])  # type: ignore[attr-defined]
    with folder.writing():
        folder.append(Failed(1.0, 99, f"it said: {sentence}; booted with {COMMAND_LINE}"))
        folder.append(KnobSaved(2.0, reboot))
        folder.append(Rebooted(3.0, "ssh:krakatoa", "a", RECORDED["boot id"], "6.18", COMMAND_LINE, "kexec", 9.0))
    for number in (1, 2):
        record = msgspec.json.decode(folder.read_raw(number, RECORD), type=Record)
        run = msgspec.structs.replace(
            record.run,
            args=("fio", f"--description={sentence}"),
            stdout=sentence.encode(),
            stderr=f"{sentence}\n{COMMAND_LINE}\n".encode(),
        )
        output = msgspec.json.decode(folder.read_raw(number, "fio.json"))
        output["jobs"][0]["job options"]["description"] = sentence
        output["note"] = [*RECORDED.values(), *LOOKS.values()]
        record = msgspec.structs.replace(record, run=run)
        folder.write_raw(number, {RECORD: msgspec.json.encode(record), "fio.json": msgspec.json.encode(output)})
    return forge(folder)


@pytest.fixture(scope="module")
def travelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Folder, bytes]:
    folder = planted(tmp_path_factory.mktemp("planted") / "folder")
    return folder, pack(folder, machine={}).data


@pytest.mark.parametrize("kind", SECRET)
def test_a_planted_identity_is_in_no_byte_that_travels(kind: str, travelled: tuple[Folder, bytes]) -> None:
    folder, data = travelled
    before = plain(pack(folder, keep_identity=True).data).lower()
    after = plain(data).lower()
    for secret in SECRET[kind]:
        forms = (secret.encode().lower(), secret.replace("\\", "\\\\").encode().lower())
        assert any(form in before for form in forms), f"{secret} was planted nowhere"
        assert not any(form in after for form in forms), f"{secret} travels"
        assert base64.b64encode(secret.encode())[:-4] not in plain(data)


@pytest.mark.parametrize("kind", LOOKS)
def test_an_identity_is_known_by_its_look_alone(kind: str) -> None:
    text = LOOKS[kind]
    for form in (
        text,
        text.replace("\\", "\\\\").replace('"', '\\"'),
        f"x{{{text}}}",
        f"({text})",
        f"{text},\n{text}.",
    ):
        said = Pseudonyms({}).text(form)
        assert not [secret for secret in SECRET[kind] if secret in said], said
        assert Pseudonyms({}).text(said) == said, "removed twice it is the same"


@pytest.mark.parametrize("number", range(len(PATTERNS)))
def test_every_look_is_needed_by_an_identity_that_was_planted(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody would see when that look is broken."""
    monkeypatch.setattr(pseudonyms, "PATTERNS", PATTERNS[:number] + PATTERNS[number + 1 :])
    names = Pseudonyms({})
    assert any(secret in names.text(text) for kind, text in LOOKS.items() for secret in SECRET[kind])


def test_there_are_more_than_26_kinds_and_every_one_was_planted() -> None:
    assert len(SECRET) >= 60


@pytest.mark.parametrize("word", LEFT_OUT)
def test_of_a_command_line_only_what_matters_for_io_travels(word: str, travelled: tuple[Folder, bytes]) -> None:
    folder, data = travelled
    assert word.encode() in plain(pack(folder, keep_identity=True).data)
    assert word.encode() not in plain(data)
    assert (
        plain(data).count(b"mitigations=off isolcpus=managed_irq,2-5 nvme.poll_queues=4 transparent_hugepage=never (")
        > 3
    )


def test_a_bundle_without_identities_still_says_what_its_folder_says(
    travelled: tuple[Folder, bytes], tmp_path: Path
) -> None:
    folder, data = travelled
    (tmp_path / "x").write_bytes(data)
    assert load(Packed(tmp_path / "x")).judgement == load(folder).judgement
    assert load(Packed(tmp_path / "x")).broken == ()


COMMAND_LINES = (
    ("mitigations=off", "mitigations=off"),
    ("quiet mitigations=off", "mitigations=off (1 further word left out)"),
    (
        "nvme.poll_queues=8 nvme.hostnqn=nqn.x nvme_core.multipath=Y",
        "nvme.poll_queues=8 nvme_core.multipath=Y (1 further word left out)",
    ),
    ('a="x mitigations=off y" nosmt', "nosmt (1 further word left out)"),
    ("elevator=/home/ernst pci=x isolcpus", "isolcpus (2 further words left out)"),
    ("", ""),
)


@pytest.mark.parametrize(("line", "wanted"), COMMAND_LINES)
def test_other_words_are_counted(line: str, wanted: str) -> None:
    assert reduced(line) == wanted
    assert reduced(wanted) == wanted, "packed again it is the same"


def test_a_command_line_that_was_reduced_is_no_difference_of_machines() -> None:
    whole = {"kernel": {"command_line": "quiet mitigations=off token=x"}, "host": {"name": "a"}}
    there = {"kernel": {"command_line": "mitigations=off (9 further words left out)"}, "host": {"name": "host-1"}}
    assert differences(whole, there) == ()
    there["kernel"]["command_line"] = "mitigations=auto (9 further words left out)"
    assert [one.what for one in differences(whole, there)] == ["kernel.command_line"]


def test_every_word_that_travels_is_documented() -> None:
    page = whole_page("send-and-reproduce")
    listed = set(re.findall(r"`[^`]+`", page.partition("## Boot parameters that travel")[2].partition("\n## ")[0]))
    assert {f"`{word}`" for word in WORDS} - listed == set()
    assert {f"`{module}.*`" for module in MODULES} - listed == set()


def test_the_sender_sees_what_is_packed(travelled: tuple[Folder, bytes], tmp_path: Path) -> None:
    folder, _ = travelled
    done = CliRunner().invoke(cli, ["pack", str(folder.path), "-o", str(tmp_path / "x.iodelta.tar.zst")])
    assert done.exit_code == 0, done.output
    for name in ("experiment.toml", "plan.json", "journal.jsonl", "environment.json"):
        assert f"{name} " in done.output
    assert "raw/" in done.output
    assert "8 files" in done.output
    assert "further words left out" in done.output
    assert "krakatoa" in done.output, "what was replaced is listed for the sender alone"


def test_the_short_name_of_a_host_goes_with_its_long_one_from_the_free_text_of_a_job_too(tmp_path: Path) -> None:
    text = QUESTION.format(path="/dev/x", blocks=1)
    text = text.replace("Is slow slower?", "Is dbwhale77.orcacorp.example slower?")
    text = text.replace('rw = "randread"', 'rw = "randread"\ndescription = "on dbwhale77, beside krakatoa"')
    folder = carried(tmp_path / "folder", text=text, blocks=1, end=None)
    after = plain(pack(folder, machine={"krakatoa": "host name"}).data)
    assert b"dbwhale77" in plain(pack(folder, keep_identity=True).data)
    assert b"dbwhale77" not in after
    assert b"krakatoa" not in after
    assert b"randread" in after
