"""Throw-away virtual machines: kernels, a small guest, and qemu, independent of what is measured in one.

``kernels`` finds a kernel by name, ``packages`` gets one from the system's package manager, ``modules`` resolves the
modules it can load, ``guest`` makes the initramfs, ``boot`` runs qemu and reports how it ended. All of this happens on
the local machine.
"""
