"""A host over SSH that really reboots into other kernels: a guest with a network, started by ``python -m``."""
