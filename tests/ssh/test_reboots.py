"""Kernels as variants on a host over SSH: a real sshd in namespaces of its own, in which kexec, uname, the boot id, the
command line and /boot are stand-ins that change when it "reboots". What really reboots is in benchmarks/ssh_reboot."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import uuid
from pathlib import Path

import pytest
from acceptance.stand import GOOD, Stand, finished, journal, kinds, queue, set_queue, shell
from waiting import until

from iodelta.errors import IodeltaError, KnobError, LostError
from iodelta.knob import restore
from iodelta.knob.kernel import Kernel
from iodelta.machine.ssh import SshMachine
from iodelta.probe.topology import resolve

from .host import Host

pytestmark = [pytest.mark.root, pytest.mark.fio, pytest.mark.beside, pytest.mark.xdist_group("ssh")]

OLD, NEW = "6.1.0-9-test", "6.12.5-1-test"
CMDLINE = f"BOOT_IMAGE=/boot/vmlinuz-{OLD} root=/dev/vda1 quiet"

KEXEC = """#!/bin/sh
cd {place}
printf '%s\\n' "$*" >>calls
case $* in
"-a -l "*)
    echo 1 >kernel/kexec_loaded
    for word; do case $word in --command-line=*) printf '%s\\n' "${{word#*=}}" >next-cmdline ;; esac; done
    basename "$3" | cut -d- -f2- >next-release ;;
-u) echo 0 >kernel/kexec_loaded ;;
-e)
    while [ -e slow ]; do sleep 0.1; done
    [ ! -e stays ] || exit 0
    echo 0 >kernel/kexec_loaded
    if [ -e panics ] || grep -q broken next-cmdline; then echo {old} >release; cat first-cmdline >cmdline
    else cat next-release >release; cat next-cmdline >cmdline; fi
    [ ! -e moved ] || cat moved >machine-id
    [ ! -e key ] || cat key >{known}
    [ ! -e away ] || ip link set {near} down
    [ ! -e queue ] || echo mq-deadline >"$(cat queue)"
    # Last, and at once: whoever comes back in the middle of it is in the boot before.
    dd if=/proc/sys/kernel/random/uuid of=boot_id conv=notrunc status=none
    kill -9 $(pgrep -P "$(cat daemon)")
    echo up >>calls ;;
esac
"""
"""kexec, and the machine that it starts."""

PORTS = itertools.count(2300)
"""Of the stand-ins, which are all on one host."""


class Fake:
    """What the stand-ins read and write."""

    def __init__(self, host: Host, place: Path, port: int) -> None:
        self.host, self.place = host, place
        for folder in ("boot", "bin", "kernel", "state"):
            (place / folder).mkdir()
        for release in (OLD, NEW):
            (place / f"boot/vmlinuz-{release}").write_text("a kernel")
            (place / f"boot/initrd.img-{release}").write_text("its initrd")
        first = {"cmdline": CMDLINE, "first-cmdline": CMDLINE, "boot_id": str(uuid.uuid4()), "release": OLD}
        for name, text in {**first, "kernel/kexec_loaded": "0", "machine-id": uuid.uuid4().hex}.items():
            (place / name).write_text(f"{text}\n")
        self.program("kexec", KEXEC.format(place=place, old=OLD, near=f"{host.name}b", known=host.place / "known"))
        self.program("uname", f'#!/bin/sh\n[ "$1" = -v ] && echo "#1 SMP test" || cat {place}/release\n')
        for name in ("reboot", "bootctl", "grub-reboot"):  # those of this machine are never to be run
            self.program(name, "#!/bin/sh\nexit 1\n")
        self.program("sync", '#!/bin/sh\n[ $# = 0 ] || exec /bin/sync "$@"\n')  # all of this machine may take long
        self.program("systemctl", "#!/bin/sh\n[ $1 != kexec ] || exec kexec -e\n")
        mounts = {"boot_id": "/proc/sys/kernel/random/boot_id", "cmdline": "/proc/cmdline", "boot": "/boot"}
        mounts |= {"kernel": "/sys/kernel", "machine-id": "/etc/machine-id"}
        if Path("/proc/sysrq-trigger").exists():  # or this machine's filesystems would become read-only
            (place / "sysrq").write_text("")
            mounts["sysrq"] = "/proc/sysrq-trigger"
        environment = (
            f"SetEnv PATH={place}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin IODELTA_STATE={place}/state"
        )
        daemon = host.serve(port, environment, mounts={place / name: to for name, to in mounts.items()})
        (place / "daemon").write_text(str(daemon))
        host.alias(f"fake{port}", port=port)
        self.name = f"ssh:fake{port}"

    def program(self, name: str, text: str) -> None:
        file = self.place / "bin" / name
        file.write_text(text)
        file.chmod(0o755)

    def flag(self, name: str, text: str = "") -> Path:
        """How it behaves in its next boot."""
        (self.place / name).write_text(text)
        return self.place / name

    @property
    def release(self) -> str:
        return (self.place / "release").read_text().strip()

    @property
    def cmdline(self) -> str:
        return (self.place / "cmdline").read_text().strip()

    @property
    def pending(self) -> list[str]:
        return sorted(path.name for path in (self.place / "state/pending").glob("*"))

    def boots(self, call: str = "-e") -> int:
        """How often it was told to start anew; ``up``: and did."""
        return (self.place / "calls").read_text().splitlines().count(call) if (self.place / "calls").exists() else 0


@pytest.fixture
def fake(host: Host, tmp_path: Path) -> Fake:
    if not Path("/etc/machine-id").exists() or shutil.which("unshare") is None:
        pytest.skip("needs /etc/machine-id to be covered, and unshare (package util-linux)")
    place = tmp_path / "fake"
    place.mkdir()
    return Fake(host, place, next(PORTS))


def asked(stand: Stand, fake: Fake, node: str, *, blocks: int = 1) -> tuple[str, ...]:
    """Two kernels, two cells, on a loop device: the arguments of iodelta."""
    file = stand.place / "kernels.toml"
    file.write_text(
        f'machine = "{fake.name}"\n[target]\npath = "{node}"\n[workload]\nrw = "randread"\nbs = ["4k", "8k"]\n'
        'direct = 1\nioengine = "libaio"\niodepth = 4\nrate_iops = 500\n'
        '[variant.old]\n"block.scheduler" = "none"\n'
        '[variant.new]\nkernel = "6.12"\n"kernel.cmdline" = "nosmt"\n"block.scheduler" = "none"\n'
        f'[design]\ntrial = "200ms"\nramp = "0s"\nblocks = {blocks}\nseed = 5\nboot = "240s"\n'
    )
    return ("run", str(file), "--folder", "folder")


@pytest.mark.night
def test_a_block_is_a_boot_of_every_kernel_which_serves_all_cells_and_the_first_kernel_is_back_at_the_end(
    stand: Stand, fake: Fake
) -> None:
    node = stand.loop()
    fake.flag("queue", f"/sys/block/{node.removeprefix('/dev/')}/queue/scheduler")
    done = stand.run(*asked(stand, fake, node))
    assert done.code in GOOD, done
    boots = kinds(stand.place / "folder", "rebooted")
    assert {one["variant"]: one["release"] for one in boots} == {"old": OLD, "new": NEW}
    assert all(one["cmdline"].endswith("quiet nosmt panic=30") == (one["variant"] == "new") for one in boots)
    assert len({one["boot_id"] for one in boots}) == len(boots)
    begun = {one["trial"]: one for one in kinds(stand.place / "folder", "started")}
    made: list[tuple[str, list[str]]] = []
    for one in journal(stand.place / "folder"):
        if one["type"] == "rebooted":
            made.append((one["variant"], []))
        elif one["type"] == "finished":
            trial = begun[one["trial"]]
            assert trial["variant"] == made[-1][0]
            if not trial["attempt"]:  # a cell's block that others' noise disturbed is made again, by itself
                made[-1][1].append(trial["cell"])
    assert [sorted(cells) for _, cells in made if cells] == [["bs=4k", "bs=8k"]] * 2, made
    assert len({(begun[n]["cell"], begun[n]["variant"]) for n in finished(stand.place / "folder")}) == 4
    assert (fake.release, fake.cmdline) == (OLD, CMDLINE), "by kexec again, the command line as it was"
    assert fake.boots() == len(boots) + 1
    assert not fake.pending
    assert "Reboots   for every variant of a block, by kexec" in done.out
    assert "kernel (old: as it is; new: 6.12); restored at the end" in done.out
    (fake.place / "kernel/kexec_loaded").unlink()
    bare = stand.run(*asked(stand, fake, node)[:2], "--dry-run")
    assert bare.code == 4
    assert fake.boots() == len(boots) + 1, "a dry run starts nothing"
    assert "there is no way to start another kernel there: kexec: the running kernel has no kexec" in bare.err


@pytest.mark.night
def test_a_kernel_that_does_not_come_up_is_left_out_with_its_reason_and_the_others_go_on(
    stand: Stand, fake: Fake
) -> None:
    words = asked(stand, fake, stand.loop())
    file = stand.place / "kernels.toml"
    broken = '[variant.broken]\nkernel = "6.12"\n"kernel.cmdline" = "broken"\n"block.scheduler" = "none"\n[design]'
    file.write_text(file.read_text().replace("[design]", broken))
    done = stand.run(*words)
    assert done.code == 3, done
    (left,) = kinds(stand.place / "folder", "left-out")
    assert left["variant"] == "broken"
    assert "it did not come up" in left["reason"]
    begun = {one["trial"]: one for one in kinds(stand.place / "folder", "started")}
    made = {(begun[number]["cell"], begun[number]["variant"]) for number in finished(stand.place / "folder")}
    assert made == {(cell, variant) for cell in ("bs=4k", "bs=8k") for variant in ("old", "new")}
    told = " ".join(done.out.split())
    assert "boot.left-out" in told
    assert "it did not come up" in told
    assert (fake.release, fake.cmdline) == (OLD, CMDLINE)
    assert not fake.pending


def test_a_kill_in_the_middle_of_a_reboot_is_put_back_by_restore_and_what_the_reboot_undid_is_known_as_gone(
    stand: Stand, fake: Fake
) -> None:
    node = stand.loop()
    set_queue(node, "scheduler", "kyber")
    running = stand.start(*asked(stand, fake, node, blocks=3))
    until(lambda: len(kinds(stand.place / "folder", "finished")) >= 2)
    fake.flag("queue", f"/sys/block/{node.removeprefix('/dev/')}/queue/scheduler")
    slow = fake.flag("slow")
    before = fake.boots()
    until(lambda: fake.boots() > before)  # it has told the host to, which takes its time
    running.signal(signal.SIGKILL)
    running.wait()
    slow.unlink()
    until(lambda: fake.boots("up") == fake.boots())
    assert fake.pending
    (script,) = (fake.place / "state/pending").glob("*-kernel.sh")
    assert f"kexec -a -l /boot/vmlinuz-{OLD}" in script.read_text()
    done = stand.run("restore", "--machine", fake.name)
    assert done.code == 0, done
    assert f"kernel: {OLD} was started again by kexec" in done.out or f"nothing to do: {OLD} runs" in done.out
    assert (fake.release, fake.cmdline) == (OLD, CMDLINE)
    assert not fake.pending
    assert queue(node, "scheduler") == "mq-deadline", "as the boot made it, not as the one before was"


@pytest.mark.night
def test_a_host_that_comes_back_as_something_else_or_not_at_all_is_said_with_what_to_do(
    fake: Fake, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", host.env["PATH"])
    monkeypatch.setattr("iodelta.machine.ssh.PAUSE", 0.2)
    known, other = host.place / "known", f"{host.far} {(host.place / 'other.pub').read_text()}"
    own, identity = known.read_text(), (fake.place / "machine-id").read_text()
    cases: dict[str, tuple[type[IodeltaError], str]] = {
        "panics": (KnobError, f"{OLD} #1 SMP test runs, and {NEW} was to be started: it did not come up"),
        "stays": (KnobError, "is still in its old boot after"),
        "moved": (LostError, "a different machine answers"),
        "key": (LostError, "another host key answers.*Host key verification failed"),
        "away": (LostError, "did not come back within 1 s.*console, BMC or power"),
    }
    for name, (kind, said) in cases.items():
        flag = fake.flag(name, other if name == "key" else f"{uuid.uuid4().hex}\n")
        try:
            with SshMachine(fake.name.removeprefix("ssh:")) as machine:
                kernel = Kernel(machine, resolve(machine, "/"), "kernel")
                kernel.limit = 1.0 if name in ("stays", "away") else 240.0
                saved = kernel.save()
                with pytest.raises(kind, match=f"(?s){said}") as raised:
                    kernel.boot("6.12")
                with contextlib.suppress(LostError):
                    assert machine.run(["true"]).returncode == 0
                    assert kind is KnobError, "what does not answer as it should is spoken to no more"
                assert raised.value.remedy
        finally:
            flag.unlink()
            shell("ip", "-n", host.name, "link", "set", f"{host.name}b", "up")
            known.write_text(own)
            (fake.place / "machine-id").write_text(identity)
        with SshMachine(fake.name.removeprefix("ssh:")) as machine:
            assert OLD in restore(machine, saved)
        assert (fake.release, fake.cmdline) == (OLD, CMDLINE), name
