"""Where the file of a history lies: write-ahead logging needs a local file system."""

from __future__ import annotations

from pathlib import Path

from iodelta.machine import LocalMachine
from iodelta.probe.mounts import mount_of, mounts

NETWORK = frozenset(
    "9p afs beegfs ceph cifs coda davfs fuse.ceph fuse.ceph-fuse fuse.curlftpfs fuse.davfs2 fuse.gcsfuse "
    "fuse.glusterfs fuse.goofys fuse.juicefs fuse.mfs fuse.mount-s3 fuse.rclone fuse.s3fs fuse.seaweedfs "
    "fuse.smbnetfs fuse.sshfs gfs2 gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs pvfs2 smb3 smbfs virtiofs".split()
)
"""Types of file systems, as the kernel lists them, whose files other machines may have open."""


def network_of(path: Path) -> str:
    """The type of the network file system on which ``path`` lies or would lie; empty for a local one."""
    mount = mount_of(str(path.absolute().resolve()), mounts(LocalMachine()))
    return mount.fstype if mount is not None and mount.fstype in NETWORK else ""
