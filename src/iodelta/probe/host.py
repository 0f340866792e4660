"""The machine around the target: kernel, CPUs, memory, limits, fio."""

from __future__ import annotations

import hashlib
import hmac
import re
from itertools import product

from iodelta.probe.reader import Reader, Section, pairs

CONFIG = re.compile(
    r"CONFIG_((?:HZ|PREEMPT\w*|NO_HZ\w*|IRQ_TIME_ACCOUNTING|VIRT_CPU_ACCOUNTING_GEN|CC_OPTIMIZE_FOR_\w+|LTO_\w+|CFI_CLANG)"
    r"|(?:BLK_(?:CGROUP\w*|WBT\w*|DEV_THROTTLING|SED_OPAL|INLINE_ENCRYPTION)|MQ_IOSCHED_\w+|IOSCHED_BFQ|IO_URING|AIO)"
    r"|(?:PSI\w*|MEMCG|CGROUP_\w+|NUMA_BALANCING\w*|TRANSPARENT_HUGEPAGE\w*|SLUB_(?:CPU_PARTIAL|DEBUG_ON|TINY)|SLAB_FREELIST\w+)"
    r"|(?:CPU_FREQ_DEFAULT\w*|X86_INTEL_PSTATE|X86_AMD_PSTATE|CPU_IDLE_GOV\w+|SCHED_\w+)"
    r"|(?:MITIGATION_\w+|CPU_MITIGATIONS|RETPOLINE|PAGE_TABLE_ISOLATION|INIT_ON_\w+|HARDENED_USERCOPY\w*|STACKPROTECTOR\w*)"
    r"|(?:KASAN|KCSAN|KMSAN|UBSAN|LOCKDEP|PROVE_LOCKING|DEBUG_(?:PREEMPT|LOCK_ALLOC|PAGEALLOC|OBJECTS|LIST|SPINLOCK)"
    r"|FUNCTION_TRACER|LATENCYTOP|SCHEDSTATS|FAULT_INJECTION|BTRFS_(?:DEBUG|ASSERT|EXPERIMENTAL)|XFS_(?:DEBUG|WARN)))=(.*)"
)
"""Options of the kernel's configuration that change the cost of an I/O."""

TAINTS = "PFSRMBUDAWCIOELKXTNJ"
"""Letters of the taint bits, bit 0 first (Documentation/admin-guide/tainted-kernels.rst); ``G`` is bit 0 unset."""

SYSCTLS = (
    *(
        "kernel/io_uring_disabled",
        "kernel/nmi_watchdog",
        "kernel/numa_balancing",
        "kernel/perf_event_paranoid",
    ),
    *(
        "kernel/sched_autogroup_enabled",
        "kernel/sched_rt_runtime_us",
        "kernel/timer_migration",
        "kernel/watchdog",
    ),
    *(
        "vm/dirty_background_bytes",
        "vm/dirty_background_ratio",
        "vm/dirty_bytes",
        "vm/dirty_expire_centisecs",
    ),
    *(
        "vm/dirty_ratio",
        "vm/dirty_writeback_centisecs",
        "vm/swappiness",
        "vm/vfs_cache_pressure",
    ),
    *("vm/zone_reclaim_mode", "vm/min_free_kbytes", "fs/aio-max-nr"),
)

MODULES = (
    *(
        "nvme",
        "nvme_core",
        "nvme_tcp",
        "scsi_mod",
        "sd_mod",
        "libata",
        "ahci",
        "mpt3sas",
        "megaraid_sas",
        "virtio_blk",
    ),
    *(
        "loop",
        "null_blk",
        "ublk_drv",
        "md_mod",
        "raid456",
        "raid10",
        "raid1",
        "dm_mod",
        "dm_crypt",
        "bcache",
        "btrfs",
    ),
    *("haltpoll", "intel_idle", "processor"),
)
"""Modules, built in or not, whose parameters change the cost of an I/O."""

CPU = "/sys/devices/system/cpu"

PURPOSE = bytes.fromhex("9b6a1c5ed7f04f0c8e0b6b8f1d0f2a47")
"""iodelta's application key for machine ids: machine-id(5) asks to keep the id itself secret."""

Files = tuple[tuple[str, ...], tuple[str, ...]]
CGROUP_V2: Files = (
    ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
    (
        "cpu.max",
        "cpuset.cpus",
        "memory.high",
        "memory.max",
        "io.max",
        "io.weight",
        "io.latency",
    ),
)
"""Where the hierarchy is mounted, and its files with limits."""
CGROUP_V1: dict[str, Files] = {
    "cpu": (
        ("/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"),
        ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
    ),
    "cpuset": (("/sys/fs/cgroup/cpuset",), ("cpuset.cpus",)),
    "memory": (("/sys/fs/cgroup/memory",), ("memory.limit_in_bytes",)),
    "blkio": (
        ("/sys/fs/cgroup/blkio",),
        (
            "blkio.throttle.read_iops_device",
            "blkio.throttle.read_bps_device",
            "blkio.weight",
        ),
    ),
}


MODEL = {
    "model": ("model name", "Model", "cpu model", "CPU part"),
    "family_model_stepping": ("cpu family", "CPU implementer"),
    "microcode": ("microcode",),
}
"""Our key -> names in /proc/cpuinfo; the first one present counts."""

CPUFREQ = {
    "governor": "scaling_governor",
    "driver": "scaling_driver",
    "epp": "energy_performance_preference",
    "khz_min": "scaling_min_freq",
    "khz_max": "scaling_max_freq",
    "khz_hardware_max": "cpuinfo_max_freq",
}
"""Our key -> file of every cpufreq policy."""


def host(reader: Reader) -> Section:
    """Name, distribution, firmware, and the virtual machine or container it runs in."""
    section = {"machine": reader.machine.name}
    section |= reader.section(
        "host",
        {
            "name": "/proc/sys/kernel/hostname",
            "vendor": "/sys/class/dmi/id/sys_vendor",
            "product": ("/sys/class/dmi/id/product_name", "/proc/device-tree/model"),
            "board": "/sys/class/dmi/id/board_name",
            "bios": "/sys/class/dmi/id/bios_version",
            "hypervisor": "/sys/hypervisor/type",
            "tuned_profile": "/etc/tuned/active_profile",
        },
    )
    release = pairs(
        reader.text("host.distribution", "/etc/os-release", "/usr/lib/os-release"), "="
    )
    if release:
        section["distribution"] = release.get("PRETTY_NAME") or release.get("NAME", "")
    # Xen names itself in sysfs; others set a flag of the CPU.
    flags = _cpu_flags(reader)
    is_virtual = "hypervisor" in section or "hypervisor" in flags
    section["virtual"] = "yes" if is_virtual else "not seen"
    # irqbalance moves interrupts between CPUs while a trial runs.
    balancers = reader.machine.glob("/run/irqbalance*/*.sock")
    section["irqbalance"] = "runs" if balancers else "not seen"
    identity = machine_id(
        reader.text("host.machine_id", "/etc/machine-id", "/var/lib/dbus/machine-id")
    )
    if identity:
        section["machine_id"] = identity
    container = reader.text(
        "host.container", "/run/systemd/container", "/run/.containerenv"
    )
    if container or reader.machine.glob("/.dockerenv"):
        section["container"] = container or "docker"
    return section


def _cpu_flags(reader: Reader) -> list[str]:
    """Return the flags of the first CPU; ARM calls them features."""
    text = reader.text("host.flags", "/proc/cpuinfo")
    flags = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    return flags[1].split() if flags else []


def machine_id(text: str) -> str:
    """Return a keyed digest of a machine-id, which does not reveal it: stays the same when a machine is renamed. Empty
    where ``text`` is not a machine-id."""
    if not re.fullmatch(r"[0-9a-f]{32}", text):
        return ""
    return hmac.new(bytes.fromhex(text), PURPOSE, hashlib.sha256).hexdigest()[:32]


def kernel(reader: Reader) -> Section:
    """Release, build, command line, taint, and the options of its configuration that matter for I/O."""
    section = reader.section(
        "kernel",
        {
            "release": "/proc/sys/kernel/osrelease",
            "version": "/proc/version",
            "command_line": "/proc/cmdline",
            "tainted": "/proc/sys/kernel/tainted",
            "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "preempt": "/sys/kernel/debug/sched/preempt",
            "security_modules": "/sys/kernel/security/lsm",
        },
    )
    bits = int(section.get("tainted", "0"))
    if bits:
        section["tainted"] += " " + "".join(
            letter for bit, letter in enumerate(TAINTS) if bits >> bit & 1
        )
    release = section.get("release", "")
    places = (
        f"/boot/config-{release}",
        f"/lib/modules/{release}/config",
        f"/usr/lib/modules/{release}/config",
    )
    text = reader.text("kernel.config", *places) or reader.command(
        "kernel.config", ["gzip", "-dc", "/proc/config.gz"]
    )
    if text:
        reader.absent.pop("kernel.config", None)
    section |= {
        f"config.{match[1]}": match[2]
        for line in text.splitlines()
        if (match := CONFIG.fullmatch(line))
    }
    return section


def sysctl(reader: Reader) -> Section:
    """Settings that change the cost of an I/O."""
    return reader.section(
        "sysctl", {name.replace("/", "."): f"/proc/sys/{name}" for name in SYSCTLS}
    )


def mitigations(reader: Reader) -> Section:
    """Return the kernel's mitigation of each known CPU vulnerability."""
    return reader.directory(f"{CPU}/vulnerabilities/*")


def cpu(reader: Reader) -> Section:
    """Model, topology, and how its clock and idle states are governed."""
    info = reader.text("cpu.model", "/proc/cpuinfo")
    first = pairs(info.split("\n\n")[0], ":")
    section = _model(first)
    section |= reader.section(
        "cpu",
        {
            "online": f"{CPU}/online",
            "present": f"{CPU}/present",
            "isolated": f"{CPU}/isolated",
            "nohz_full": f"{CPU}/nohz_full",
            "smt": f"{CPU}/smt/control",
            "boost": (f"{CPU}/cpufreq/boost", f"{CPU}/intel_pstate/no_turbo"),
            "pstate": (f"{CPU}/intel_pstate/status", f"{CPU}/amd_pstate/status"),
            "idle_driver": f"{CPU}/cpuidle/current_driver",
            "idle_governor": (
                f"{CPU}/cpuidle/current_governor",
                f"{CPU}/cpuidle/current_governor_ro",
            ),
        },
    )
    if "boost" in section and not reader.machine.glob(f"{CPU}/cpufreq/boost"):
        # no_turbo says the opposite.
        section["boost"] = "0" if section["boost"] == "1" else "1"
    section |= _topology(reader)
    policy = f"{CPU}/cpufreq/policy*"
    for key, file in CPUFREQ.items():
        text = reader.together(f"cpu.{key}", f"{policy}/{file}")
        if text:
            section[key] = text
    for path in reader.machine.glob(f"{CPU}/cpu0/cpuidle/state*/name"):
        disabled = reader.text("cpu.idle_states", path.replace("/name", "/disable"))
        name = reader.text("cpu.idle_states", path)
        state = path.split("/")[-2]
        section[f"idle.{state}"] = f"{name} (disabled)" if disabled == "1" else name
    return section


def _model(first: Section) -> Section:
    """Return the model of the first CPU; x86 and ARM have other words for it in /proc/cpuinfo."""
    section: Section = {}
    for key, names in MODEL.items():
        values = [first[name] for name in names if name in first]
        if values and values[0]:
            section[key] = values[0]
    if "cpu family" in first:
        parts = [first.get(name, "?") for name in ("cpu family", "model", "stepping")]
        section["family_model_stepping"] = "/".join(parts)
    return section


def _topology(reader: Reader) -> Section:
    """Return how many threads, cores and sockets there are."""
    threads = reader.machine.glob(f"{CPU}/cpu[0-9]*/topology/core_id")
    sockets: set[str] = set()
    # Cores are numbered within their socket.
    cores: set[tuple[str, str]] = set()
    for path in threads:
        package = path.replace("core_id", "physical_package_id")
        socket = reader.text("cpu.sockets", package)
        sockets.add(socket)
        cores.add((socket, reader.text("cpu.cores", path)))
    return {
        "threads": str(len(threads)),
        "cores": str(len(cores)),
        "sockets": str(len(sockets)),
    }


def numa(reader: Reader) -> Section:
    """CPUs, memory and distances of each node."""
    section = {}
    for path in reader.machine.glob("/sys/devices/system/node/node[0-9]*"):
        node = path.rsplit("/", 1)[1]
        section[f"{node}.cpus"] = reader.text(f"numa.{node}.cpus", f"{path}/cpulist")
        section[f"{node}.distance"] = reader.text(
            f"numa.{node}.distance", f"{path}/distance"
        )
        total = re.search(
            r"MemTotal:\s*(\d+ kB)",
            reader.text(f"numa.{node}.memory", f"{path}/meminfo"),
        )
        section[f"{node}.memory"] = total[1] if total else ""
    return {key: value for key, value in section.items() if value}


def memory(reader: Reader) -> Section:
    """Size, huge pages, swap."""
    info = pairs(reader.text("memory.total", "/proc/meminfo"), ":")
    names: tuple[str, ...] = (
        "MemTotal",
        "HugePages_Total",
        "Hugepagesize",
        "SwapTotal",
    )
    section = {name: info[name] for name in names if name in info}
    thp = "/sys/kernel/mm/transparent_hugepage"
    section |= reader.section(
        "memory",
        {
            "thp": f"{thp}/enabled",
            "thp_defrag": f"{thp}/defrag",
            "zswap": "/sys/module/zswap/parameters/enabled",
        },
    )
    swapped = [
        line.split()
        for line in reader.text("memory.swap", "/proc/swaps").splitlines()[1:]
    ]
    section["swap"] = (
        ", ".join(f"{words[0]} {words[1]} {words[2]} kB" for words in swapped) or "none"
    )
    return section


def fio(reader: Reader) -> Section:
    """Return which fio runs, its version, and whether a package of the distribution owns it."""
    path = reader.command("fio.path", ["sh", "-c", "command -v fio"])
    if not path:
        reader.absent["fio.path"] = "no fio on PATH"
        return {}
    real = reader.command("fio.real_path", ["readlink", "-f", "--", path]) or path
    section = {
        "path": real,
        "version": reader.command("fio.version", [path, "--version"]),
    }
    package = reader.command("fio.package", ["dpkg", "-S", real]) or reader.command(
        "fio.package", ["rpm", "-qf", real]
    )
    section["build"] = "distribution" if package else "not of a dpkg or rpm package"
    if package:
        reader.absent.pop("fio.package", None)
        name = package.split(":")[0]
        section["package"] = (
            reader.command(
                "fio.package_version",
                ["dpkg-query", "-W", "-f", "${Package} ${Version}", name],
            )
            if package.startswith(f"{name}:")
            else package
        )
    engines = reader.command("fio.engines", [path, "--enghelp"]).splitlines()[1:]
    section["engines"] = " ".join(sorted(engine.strip() for engine in engines))
    return {key: value for key, value in section.items() if value}


def limits(reader: Reader) -> Section:
    """Limits on our own processes: affinity, resource limits, control groups from the root down (``a > b``)."""
    section = {}
    status = pairs(reader.text("limits.status", "/proc/self/status"), ":")
    for key, name in {
        "cpus": "Cpus_allowed_list",
        "memory_nodes": "Mems_allowed_list",
    }.items():
        if name in status:
            section[key] = status[name]
    for line in reader.text("limits.memlock", "/proc/self/limits").splitlines():
        if line.startswith(("Max locked memory", "Max open files")):
            words = line.split()
            section["_".join(words[1:3])] = words[3]
    for line in reader.text("limits.cgroup", "/proc/self/cgroup").splitlines():
        section |= _cgroup_limits(reader, line)
    return section


def _cgroup_limits(reader: Reader, line: str) -> Section:
    """Return the limits of one line of /proc/self/cgroup, ``NUMBER:CONTROLLERS:PATH``; version 2 names no controllers."""
    section: Section = {}
    _, controllers, path = line.split(":", 2)
    if controllers:
        roots, files = CGROUP_V1.get(controllers.split(",")[0], ((), ()))
    else:
        roots, files = CGROUP_V2
        section["cgroup"] = path
    for file in files:
        texts: list[str] = []
        for root, level in product(roots, _levels(path)):
            values = reader.directory(f"{root}{level.rstrip('/')}/{file}").values()
            texts += [text.replace("\n", "; ") for text in values]
        if texts:
            section[file] = " > ".join(texts)
    return section


def modules(reader: Reader) -> Section:
    """Parameters of drivers (``nvme.poll_queues``, ``scsi_mod.use_blk_mq``, ``haltpoll.guest_halt_poll_ns``)."""
    section: Section = {}
    for module in MODULES:
        parameters = reader.directory(f"/sys/module/{module}/parameters/*")
        section |= {f"{module}.{name}": text for name, text in parameters.items()}
    return section


def now(reader: Reader) -> Section:
    """Values of this moment only: never part of a comparison."""
    section = reader.section(
        "now",
        {
            "boot_id": "/proc/sys/kernel/random/boot_id",
            "load": "/proc/loadavg",
            "uptime_s": "/proc/uptime",
        },
    )
    section["uptime_s"] = section.get("uptime_s", "").split(" ")[0]
    section["memory_available"] = pairs(
        reader.text("now.memory", "/proc/meminfo"), ":"
    ).get("MemAvailable", "")
    section["unix_time"] = f"{reader.machine.time():.0f}"
    return {key: value for key, value in section.items() if value}


def _levels(path: str) -> list[str]:
    """``/a/b`` -> ``/``, ``/a``, ``/a/b``: a limit holds for everything below it."""
    levels = ["/"]
    for word in filter(None, path.split("/")):
        levels.append(f"{levels[-1].rstrip('/')}/{word}")
    return levels
