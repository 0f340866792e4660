"""Path mode: the instructions that an I/O takes through the kernel, counted in a guest whose clock is its instructions.

No time is measured: qemu's TCG with ``-icount shift=0,sleep=off`` makes one guest instruction one nanosecond of guest
time, so fio's latency log is a count of instructions, the same to the last digit however busy this machine is.
"""
