"""The words of a kernel command line that matter for I/O: a bundle omits all others, which may be names and passwords.

An installer or an initramfs may read ``rd.iscsi.password=``, ``token=``, ``ip=`` and many other words, which nobody can
list. So this module lists the words to keep, with values that cannot be names, and counts the rest.
"""

from __future__ import annotations

import re

WORDS = frozenset(
    # what mitigations cost
    "mitigations nospectre_v1 nospectre_v2 spectre_v2 spectre_v2_user spectre_bhi spec_store_bypass_disable "
    "spec_rstack_overflow retbleed l1tf mds tsx tsx_async_abort mmio_stale_data srbds gather_data_sampling "
    "reg_file_data_sampling indirect_target_selection tsa vmscape pti nopti kpti "
    # which CPUs do what
    "isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll irqaffinity threadirqs skew_tick maxcpus nr_cpus nosmt preempt "
    # clocks and sleep states
    "intel_pstate amd_pstate idle nohlt intel_idle.max_cstate processor.max_cstate cpuidle.off cpuidle.governor "
    "cpufreq.off cpufreq.default_governor clocksource tsc notsc hpet nohpet pcie_aspm pcie_port_pm "
    # block layer and devices
    "elevator iommu iommu.strict iommu.passthrough intel_iommu amd_iommu swiotlb noapic nomsi "
    # memory
    "transparent_hugepage hugepages hugepagesz default_hugepagesz numa numa_balancing init_on_alloc init_on_free "
    "slub_debug page_poison debug_pagealloc "
    # what is accounted or watched at every call
    "audit selinux apparmor security cgroup_disable cgroup_no_v1 systemd.unified_cgroup_hierarchy psi nmi_watchdog "
    "nowatchdog nosoftlockup".split()
)
"""Boot parameters that are kept with their values."""

MODULES = frozenset(
    "nvme nvme_core nvme_tcp scsi_mod sd_mod libata ahci mpt3sas megaraid_sas virtio_blk virtio_scsi null_blk ublk_drv "
    "loop dm_mod dm_multipath md_mod raid1 raid10 raid456 btrfs zswap workqueue rcutree rcupdate kvm kvm_intel kvm_amd "
    "haltpoll cpuidle_haltpoll".split()
)
"""Modules whose parameters are kept if the value is a number or a switch."""

_ONE = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_VALUE = re.compile(r"[A-Za-z0-9_,.:+-]{1,64}")
_SWITCH = re.compile(
    r"-?\d{1,12}[KMGkmg]?|0x[0-9A-Fa-f]{1,8}|[YyNn]|on|off|auto|none|mq-deadline|kyber|bfq"
)
_COUNT = re.compile(r"\s*\((\d+) further words? left out\)\Z")


def reduced(line: str) -> str:
    """Return a command line as a bundle contains it; reducing it again does not change it."""
    before = _COUNT.search(line)
    words = _ONE.findall(_COUNT.sub("", line))
    travelling = [word for word in words if _travels(word)]
    left_out = len(words) - len(travelling)
    if before:
        left_out += int(before[1])
    if left_out:
        noun = "word" if left_out == 1 else "words"
        travelling.append(f"({left_out} further {noun} left out)")
    return " ".join(travelling)


def left_out_words(line: str) -> int:
    """Number of words of a command line that a bundle omits."""
    count = _COUNT.search(reduced(line))
    if not count:
        return 0
    return int(count[1])


def without_count(line: str) -> str:
    """Return a reduced line without the count of omitted words."""
    return _COUNT.sub("", line)


def _travels(word: str) -> bool:
    """Return whether a boot parameter matters for I/O, and its value cannot be a name."""
    name, equals, value = word.partition("=")
    if name in WORDS:
        return not equals or bool(_VALUE.fullmatch(value))
    module, dot, _ = name.partition(".")
    if not dot or module not in MODULES or not re.fullmatch(r"[\w.]+", name):
        return False
    return bool(_SWITCH.fullmatch(value))
