"""A small host that really reboots: a guest under qemu with sshd, kexec, two kernels in /boot and a disk to measure.

Its root is the initramfs; /boot and /var/lib/iodelta are on its first disk, so they outlive a reboot. The default
entry, what a reset comes back to, is the first kernel. Its cable is a tap device: qemu's user network spins while a
connection that it accepted waits for a guest that is away.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from iodelta.machine.vm import CALM, PROGRAMS, SCHEDULERS
from iodelta.vm import boot, guest, kernels
from iodelta.vm.cpio import Entry, program

INIT = b"""#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mkdir -p /dev/shm /run/sshd /boot /var/lib/iodelta /root
mount -t tmpfs tmpfs /dev/shm
while read -r module parameters; do insmod /modules/$module $parameters; done </modules/order
mount -t ext4 /dev/vda /mnt
mount --bind /mnt/boot /boot
mount --bind /mnt/state /var/lib/iodelta
hostname guest
ifconfig lo 127.0.0.1 up
for word in $(cat /proc/cmdline); do
    case $word in guest=*) ifconfig eth0 ${word#guest=} netmask 255.255.255.0 up ;; esac
done
/bin/sshd -f /etc/sshd_config
echo "guest is up with $(uname -r)"
while :; do sleep 1000; done
"""

SSHD = """Port 22
HostKey /etc/host
AuthorizedKeysFile /etc/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
UseDNS no
MaxSessions 20
"""

FIXED = "nokaslr"
"""Boot parameters: a kernel that is not laid over the one before clears that one's code, of which qemu has
translations, at some hundred bytes a second."""

TCG = "tcg,tb-size=16"
"""Few translations are kept: for those of the kernel before, a write to its memory is self-modifying code."""

MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "ext4")


class Host:
    """Booted when it is entered, with the first of ``names`` (``6.1``, ``6.12``); ``ssh_config`` knows it as ``guest``.

    Raises MeasureError for what this machine lacks.
    """

    def __init__(self, names: Sequence[str], *, iops: int = 0, memory: int = 768) -> None:
        """``iops``: the throttle of the measured disk, 0 for none."""
        self.kernels = [kernels.find(name) for name in names]
        self.place = Path(tempfile.mkdtemp(prefix="iodelta-reboot-"))
        self._iops = iops
        self._memory = memory
        self._tap = f"iod{uuid.uuid4().hex[:6]}"
        self._qemu: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._make()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu.wait()
        subprocess.run(["ip", "link", "delete", self._tap], capture_output=True, check=False)
        shutil.rmtree(self.place, ignore_errors=True)

    @property
    def console(self) -> str:
        """All that its console has shown."""
        return (self.place / "console").read_text(errors="replace")

    @property
    def env(self) -> dict[str, str]:
        """An environment in which ``ssh guest`` reaches it."""
        return {**os.environ, "PATH": f"{self.place}/bin:{os.environ['PATH']}"}

    def reset(self) -> None:
        """Press its button."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(self.place / "monitor"))
            monitor.sendall(b"system_reset\n")
            time.sleep(0.5)

    def wait_for(self, text: str, times: int = 1, seconds: float = 180.0) -> None:
        """Until its console has shown that so many times."""
        end = time.monotonic() + seconds
        while self.console.count(text) < times:
            if time.monotonic() > end or (self._qemu is not None and self._qemu.poll() is not None):
                raise TimeoutError(f"{self.console[-2000:]}\n{(self.place / 'qemu').read_text(errors='replace')}")
            time.sleep(0.1)

    # ---------------------------------------------------------------------------------------------- how it is made

    def _make(self) -> None:
        for name in ("user", "host"):
            key = str(self.place / name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        tree = self.place / "tree"
        for folder in ("boot", "state"):
            (tree / folder).mkdir(parents=True)
        for kernel in self.kernels:
            shutil.copyfile(kernel.image, tree / "boot" / f"vmlinuz-{kernel.release}")
            shutil.copyfile(self._initrd(kernel), tree / "boot" / f"initrd.img-{kernel.release}")
        for name, size in (("system", 256), ("disk", 64)):
            with open(self.place / name, "wb") as file:
                file.truncate(size << 20)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(self.place / "system")], check=True)
        shutil.rmtree(tree)

    def _initrd(self, kernel: kernels.Kernel) -> str:
        needed = kernel.loadable().needed([*MODULES, *SCHEDULERS])
        base = guest.base(
            modules=needed.load,
            programs=(*PROGRAMS, "grep", "sshd", "kexec"),
            files={"init": program(INIT), **self._files()},
        )
        return base.path

    def _files(self) -> Mapping[str, Entry]:
        files = {
            "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\nsshd:x:100:100::/run/sshd:/bin/false\n",
            "etc/group": b"root:x:0:\nsshd:x:100:\n",
            "etc/sshd_config": SSHD.encode(),
            "etc/authorized": (self.place / "user.pub").read_bytes(),
            "etc/machine-id": f"{uuid.uuid5(uuid.NAMESPACE_OID, str(self.place)).hex}\n".encode(),
        }
        entries = {name: Entry(data) for name, data in files.items()}
        entries["etc/host"] = Entry((self.place / "host").read_bytes(), 0o100600)
        return entries

    def _start(self) -> None:
        net = f"10.214.{random.SystemRandom().randrange(1, 255)}"
        for words in (
            *(f"tuntap add dev {self._tap} mode tap", f"address add {net}.1/24 dev {self._tap}"),
            f"link set {self._tap} up",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        first = self.kernels[0]
        limit = f",throttling.iops-total={self._iops}" if self._iops else ""
        asked = boot.Boot(
            first.image,
            self._initrd(first),
            cmdline=f"console=ttyS0 quiet {CALM} {FIXED} guest={net}.2",
            memory=self._memory,
            devices=(
                *("-netdev", f"tap,id=net,ifname={self._tap},script=no,downscript=no"),
                *("-device", "virtio-net-pci,netdev=net,romfile="),
                *("-drive", "if=virtio,format=raw,file=system"),
                *("-drive", f"if=virtio,format=raw,file=disk{limit}"),
                *("-monitor", "unix:monitor,server=on,wait=off"),
            ),
        )
        qemu = boot.command(asked, console="file:console", out="null")
        qemu.remove("-no-reboot")
        qemu[qemu.index("tcg")] = TCG
        (self.place / "console").touch()
        with open(self.place / "qemu", "wb") as said:
            self._qemu = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *qemu],
                cwd=self.place,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._client(f"{net}.2")
        self.wait_for("guest is up with")

    def _client(self, address: str) -> None:
        """An ssh on PATH that knows the guest, and nothing of ~/.ssh."""
        key = (self.place / "host.pub").read_text()
        (self.place / "known").write_text(f"guest {key}")
        lines = ("Host guest", f"HostName {address}", "User root", "HostKeyAlias guest")
        keys = (f"IdentityFile {self.place}/user", "IdentitiesOnly yes", "IdentityAgent none")
        known = (
            f"UserKnownHostsFile {self.place}/known",
            "GlobalKnownHostsFile /dev/null",
            "StrictHostKeyChecking yes",
        )
        (self.place / "ssh_config").write_text("\n".join((*lines, *keys, *known)) + "\n")
        (self.place / "bin").mkdir()
        client = self.place / "bin" / "ssh"
        client.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.place}/ssh_config "$@"\n')
        client.chmod(0o755)


def stopped(process: subprocess.Popen[str], seconds: float) -> bool:
    """Whether a process ended in time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.poll() is not None
