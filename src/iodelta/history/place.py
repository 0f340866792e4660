"""Where the file of a history lies: write-ahead logging needs a local file system."""

from __future__ import annotations

from pathlib import Path

from iodelta.machine import LocalMachine
from iodelta.probe.mounts import mount_of, mounts

NETWORK = frozenset(
    "9p acfs afs auristorfs beegfs ceph cifs coda davfs gfs2 gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs prl_fs "
    "pvfs2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs fuse.afpfs fuse.blobfuse fuse.blobfuse2 fuse.ceph "
    "fuse.ceph-fuse fuse.cephfs fuse.curlftpfs fuse.davfs fuse.davfs2 fuse.fuse_dfs fuse.gcsfuse fuse.glusterfs "
    "fuse.goofys fuse.google-drive-ocamlfuse fuse.grpcfuse fuse.gvfsd-fuse fuse.juicefs fuse.lizardfs fuse.mfs "
    "fuse.moosefs fuse.mount-s3 fuse.onedriver fuse.rclone fuse.s3backer fuse.s3fs fuse.s3ql fuse.seaweedfs "
    "fuse.smbnetfs fuse.sshfs fuse.vmhgfs-fuse".split()
)
"""Types of file systems, as the kernel lists them, whose files other machines may have open."""


def network_of(path: Path) -> str:
    """Return the type of the network file system on which ``path`` lies or would lie; empty for a local one."""
    mount = mount_of(str(path.absolute().resolve()), mounts(LocalMachine()))
    return mount.fstype if mount is not None and mount.fstype in NETWORK else ""
