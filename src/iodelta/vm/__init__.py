"""Throw-away virtual machines: kernels, a small guest, and qemu. Knows nothing of what is measured in one.

``kernels`` finds a kernel by name, ``packages`` gets one from the system's package manager, ``modules`` resolves what
it can load, ``guest`` makes the initramfs, ``boot`` runs qemu and says how it ended. Everything here is this machine's.
"""
