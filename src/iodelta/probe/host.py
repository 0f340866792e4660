"""The machine around the target: kernel, CPUs, memory, limits, fio."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from itertools import product

from iodelta.errors import MachineError
from iodelta.probe.devices import btrfs_of, device, interrupts, with_below
from iodelta.probe.mounts import mounts
from iodelta.probe.reader import Reader, Section, pairs, summary
from iodelta.probe.sysfs import sysfs_name
from iodelta.probe.topology import Target

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

SYSCTLS = tuple(
    "kernel/io_uring_disabled kernel/nmi_watchdog kernel/numa_balancing kernel/perf_event_paranoid "
    "kernel/sched_autogroup_enabled kernel/sched_rt_runtime_us kernel/timer_migration kernel/watchdog "
    "vm/dirty_background_bytes vm/dirty_background_ratio vm/dirty_bytes vm/dirty_expire_centisecs "
    "vm/dirty_ratio vm/dirty_writeback_centisecs vm/swappiness vm/vfs_cache_pressure vm/zone_reclaim_mode "
    "vm/min_free_kbytes fs/aio-max-nr".split()
)

MODULES = tuple(
    "nvme nvme_core nvme_tcp scsi_mod sd_mod libata ahci mpt3sas megaraid_sas virtio_blk loop null_blk "
    "ublk_drv md_mod raid456 raid10 raid1 dm_mod dm_crypt bcache btrfs haltpoll intel_idle processor".split()
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
    # The flags of the first CPU; ARM calls them features
    text = reader.text("host.flags", "/proc/cpuinfo")
    line = re.search(r"^(?:flags|Features)\s*:(.*)", text, re.MULTILINE)
    flags = line[1].split() if line else []
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
    section = _model(
        pairs(reader.text("cpu.model", "/proc/cpuinfo").split("\n\n")[0], ":")
    )
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
    # How many threads, cores and sockets there are
    threads = reader.machine.glob(f"{CPU}/cpu[0-9]*/topology/core_id")
    sockets: set[str] = set()
    # Cores are numbered within their socket.
    cores: set[tuple[str, str]] = set()
    for path in threads:
        socket = reader.text(
            "cpu.sockets", path.replace("core_id", "physical_package_id")
        )
        sockets.add(socket)
        cores.add((socket, reader.text("cpu.cores", path)))
    section |= {
        "threads": str(len(threads)),
        "cores": str(len(cores)),
        "sockets": str(len(sockets)),
    }
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
        # The limits of one line of /proc/self/cgroup, `NUMBER:CONTROLLERS:PATH`; version 2 names no controllers
        of_group: Section = {}
        _, controllers, path = line.split(":", 2)
        if controllers:
            roots, files = CGROUP_V1.get(controllers.split(",")[0], ((), ()))
        else:
            roots, files = CGROUP_V2
            of_group["cgroup"] = path
        for file in files:
            texts: list[str] = []
            for root, level in product(roots, _levels(path)):
                values = reader.directory(f"{root}{level.rstrip('/')}/{file}").values()
                texts += [text.replace("\n", "; ") for text in values]
            if texts:
                of_group[file] = " > ".join(texts)
        section |= of_group
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


PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

MD = tuple(
    "level layout chunk_size raid_disks degraded array_state sync_action sync_completed bitmap/location "
    "bitmap/chunksize bitmap_type metadata_version consistency_policy stripe_cache_size group_thread_cnt "
    "preread_bypass_threshold skip_copy sync_speed_max".split()
)
BTRFS = tuple(
    "label read_policy nodesize sectorsize checksum exclusive_operation quota_override".split()
)
BTRFS_DEVICE = ("missing", "replace_target", "writeable")
BCACHE = tuple(
    "state cache_mode sequential_cutoff readahead_cache_policy writeback_percent dirty_data".split()
)


def target_section(target: Target) -> Section:
    """Return the target itself."""
    identity = target.identity
    section = {
        "path": target.path,
        "kind": target.kind,
        "real_path": target.real_path,
        "device": target.device or "",
        "mount": target.mount,
        "fstype": target.fstype,
        "size_bytes": str(target.size_bytes or ""),
        "serial": identity.serial,
        "wwid": identity.wwid,
        "uuid": identity.uuid,
        "partition_uuid": identity.partition_uuid,
    }
    return {key: value for key, value in section.items() if value}


def filesystem(reader: Reader, target: Target) -> Section:
    """Where it is mounted and with which options; the layout of a btrfs."""
    try:
        table = mounts(reader.machine)
    except MachineError as error:
        reader.absent["filesystem"] = error.what
        return {}
    on_target = [mount for mount in table if mount.point == target.mount]
    if not target.mount or not on_target:
        reader.absent["filesystem"] = "the target is on no mounted filesystem"
        return {}
    mount = on_target[0]
    section = {
        "type": mount.fstype,
        "source": mount.source,
        "options": ",".join(mount.options),
    }
    if mount.fstype == "btrfs" and target.devices:
        fsid = btrfs_of(reader.machine, target.devices[0])
        if fsid:
            # The layout of a btrfs, and the state of its devices
            base = f"/sys/fs/btrfs/{fsid}"
            layout = {"btrfs.fsid": fsid}
            files = {f"btrfs.{file}": f"{base}/{file}" for file in BTRFS}
            layout |= reader.section("filesystem", files)
            for kind in ("data", "metadata", "system"):
                allocation = f"{base}/allocation/{kind}"
                # A directory for each RAID profile in use.
                profiles = reader.machine.glob(f"{allocation}/*/total_bytes")
                names = [path.split("/")[-2] for path in profiles]
                layout[f"btrfs.{kind}"] = ", ".join(names)
                totals = {
                    f"btrfs.{kind}.total_bytes": f"{allocation}/total_bytes",
                    f"btrfs.{kind}.bytes_used": f"{allocation}/bytes_used",
                }
                layout |= reader.section("filesystem", totals)
            for key in ("devices", "features"):
                layout[f"btrfs.{key}"] = " ".join(_names(reader, f"{base}/{key}/*"))
            for missing in reader.machine.glob(f"{base}/devinfo/*/missing"):
                directory = missing.rpartition("/")[0]
                devid = directory.rpartition("/")[2]
                states = reader.directory(
                    *(f"{directory}/{file}" for file in BTRFS_DEVICE)
                )
                for key, value in states.items():
                    layout[f"btrfs.devid{devid}.{key}"] = value
            section |= layout
    return section


def _names(reader: Reader, pattern: str) -> list[str]:
    """Return the last parts of the paths that match."""
    return [path.rsplit("/", 1)[1] for path in reader.machine.glob(pattern)]


def devices(reader: Reader, target: Target) -> tuple[Section, ...]:
    """Return the target's block devices, then every one below them, nearest first."""
    try:
        names = with_below(reader.machine, (*target.devices, *target.disks))
        return tuple(_device(reader, name) for name in names)
    except MachineError as error:
        reader.absent["devices"] = error.sentence
        return ()


def _attributes(reader: Reader, directory: str, files: Sequence[str]) -> Section:
    """Return the text of each of these files that exists; a file in a subdirectory by its path with ``_`` for ``/``."""
    section = {}
    for file in files:
        for text in reader.directory(f"{directory}/{file}").values():
            section[file.replace("/", "_")] = text
    return section


def _device(reader: Reader, name: str) -> Section:
    this = device(reader.machine, name)
    base = f"/sys/class/block/{sysfs_name(name)}"
    section = {"name": name, "size_bytes": str(this.size_bytes)}
    if this.partition:
        section |= {"partition_of": this.disk, "partition": str(this.partition)}
        return section | reader.section(
            name,
            {"start_sector": f"{base}/start", "alignment": f"{base}/alignment_offset"},
        )
    section |= _hardware(reader, name, base)
    section |= _prefixed("queue", reader.directory(f"{base}/queue/*"))
    section |= _prefixed("queue.iosched", reader.directory(f"{base}/queue/iosched/*"))
    # Which CPUs each hardware queue serves, and where its interrupts may go
    queues = {}
    paths = sorted(
        reader.machine.glob(f"{base}/mq/*/cpu_list"),
        key=lambda path: int(path.split("/")[-2]),
    )
    if paths:
        queues["hardware_queues"] = str(len(paths))
    for path in paths:
        queues[f"mq.{path.split('/')[-2]}.cpus"] = reader.text(f"{name}.mq", path)
    for place, number in enumerate(interrupts(reader.machine, name)):
        text = reader.directory(f"/proc/irq/{number}/effective_affinity_list").get(
            "effective_affinity_list"
        )
        if text:
            queues[f"interrupt.{place}.cpus"] = text
    section |= queues
    section |= _prefixed("loop", reader.directory(f"{base}/loop/*"))
    section |= _prefixed("md", _attributes(reader, f"{base}/md", MD))
    section |= _prefixed("bcache", _attributes(reader, f"{base}/bcache", BCACHE))
    section |= _prefixed("dm", reader.directory(f"{base}/dm/name", f"{base}/dm/uuid"))
    for path in reader.machine.glob(f"{base}/md/dev-*"):
        member = path.rsplit("/dev-", 1)[1]
        states = reader.directory(f"{path}/slot", f"{path}/state")
        slot, state = states.get("slot", "?"), states.get("state", "?")
        section[f"md.member.{member}"] = f"slot {slot}, {state}"
    if "dm.name" in section:
        # The types of a device mapper's targets only: the rest of its table may contain encryption keys
        words = ["dmsetup", "table", "--", section["dm.name"]]
        table = reader.command(f"{name}.dm.targets", words)
        rows = [line.split() for line in table.splitlines()]
        types = [row[2] for row in rows if len(row) > 2]
        if types:
            section["dm.targets"] = summary(types)
    if this.slaves:
        section["members"] = " ".join(this.slaves)
    if this.holders:
        section["holders"] = " ".join(this.holders)
    return section


def _prefixed(prefix: str, section: Section) -> Section:
    return {f"{prefix}.{key}": text for key, text in section.items()}


def _hardware(reader: Reader, name: str, base: str) -> Section:
    hardware = reader.directory(f"{base}/ro", f"{base}/removable")
    real = reader.command(f"{name}.bus", ["readlink", "-f", "--", f"{base}/device"])
    if not reader.machine.glob(f"{base}/device"):
        reader.absent[f"{name}.hardware"] = "a virtual device"
        return hardware
    hardware |= reader.section(
        name,
        {
            "model": (f"{base}/device/model", f"{base}/device/name"),
            "vendor": f"{base}/device/vendor",
            "firmware": (
                f"{base}/device/firmware_rev",
                f"{base}/device/rev",
                f"{base}/device/fwrev",
            ),
            "transport": f"{base}/device/transport",
            "cache": (
                *reader.machine.glob(f"{base}/device/scsi_disk/*/cache_type"),
                f"{base}/cache_type",
            ),
            "queue_depth": f"{base}/device/queue_depth",
            "power_control": (
                f"{base}/device/power/control",
                f"{base}/device/device/power/control",
            ),
            # The longest delay with which an NVMe drive may leave its power states (APST).
            "wake_latency_us": f"{base}/device/power/pm_qos_latency_tolerance_us",
        },
    )
    if "transport" not in hardware:
        kinds = (
            "usb",
            "virtio",
            "nvme",
            "ata",
            "end_device",
            "rport",
            "session",
            "mmc_host",
        )
        seen = [kind for kind in kinds if re.search(rf"/{kind}[^/]*", real)]
        if seen:
            hardware["transport"] = {
                "end_device": "sas",
                "rport": "fc",
                "session": "iscsi",
            }.get(seen[0], seen[0])
            reader.absent.pop(f"{name}.transport", None)
    addresses = PCI.findall(real)
    if addresses:
        pci = f"/sys/bus/pci/devices/{addresses[-1]}"
        hardware["pci"] = addresses[-1]
        hardware |= reader.section(
            name,
            {
                "numa_node": f"{pci}/numa_node",
                "link_speed": f"{pci}/current_link_speed",
                "link_width": f"{pci}/current_link_width",
                "link_speed_max": f"{pci}/max_link_speed",
                "link_width_max": f"{pci}/max_link_width",
            },
        )
    return hardware
