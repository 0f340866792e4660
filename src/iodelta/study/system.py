"""The system in the few lines that a reader of a mail needs, without host names, serial numbers and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from iodelta.decoding import active, sound
from iodelta.lab.folder import ENVIRONMENT, Folder
from iodelta.study.words import inert, size

Environment = Mapping[str, Any]

CLOCK = ("governor", "driver", "epp", "boost", "idle_governor")
"""The settings that determine the clock of the CPUs."""


def recorded_environment(folder: Folder) -> dict[str, Any]:
    """Return what a folder says of its machine; empty where the run was killed before it recorded one. Raises
    MeasureError.
    """
    if not folder.has(ENVIRONMENT):
        return {}
    return sound(folder.read_struct(ENVIRONMENT, dict[str, Any]))


def system(environment: Environment) -> tuple[tuple[str, str], ...]:
    """Name and value of what matters most, from a recorded environment; what it lacks is left out."""
    return tuple((name, inert(text)) for name, text in _facts(environment) if text)


def _facts(environment: Environment) -> Iterator[tuple[str, str]]:
    kernel = _section(environment, "kernel")
    cpu = _section(environment, "cpu")
    host = _section(environment, "host")
    names = [host[key] for key in ("vendor", "product") if key in host]
    parts = [" ".join(names)]
    if host.get("virtual") == "yes":
        parts.append("virtual machine")
    if "container" in host:
        parts.append(f"in a container ({host['container']})")
    parts.append(host.get("distribution", ""))
    yield "machine", ", ".join(filter(None, parts))
    numa = _section(environment, "numa")
    if not cpu:
        processors = ""
    else:
        counts = [
            _count(cpu.get(name, "?"), name) for name in ("sockets", "cores", "threads")
        ]
        nodes = len({key.partition(".")[0] for key in numa})
        if nodes > 1:
            counts.append(f"{nodes} NUMA nodes")
        processors = f"{cpu.get('model', 'unknown')}: {', '.join(counts)}"
    yield "CPU", processors
    yield "CPU clock", ", ".join(f"{key} {cpu[key]}" for key in CLOCK if key in cpu)
    yield "memory", _kib(_section(environment, "memory").get("MemTotal", ""))
    yield "kernel", kernel.get("release", "")
    yield "mitigations", _mitigations(kernel, _section(environment, "mitigations"))
    yield "clock source", kernel.get("clocksource", "")
    yield "fio", _fio(_section(environment, "fio"))
    yield (
        "target",
        _target(_section(environment, "target"), _section(environment, "filesystem")),
    )
    for device in environment.get("devices", ()):
        if isinstance(device, dict) and "partition_of" not in device:
            yield (
                f"device {inert(str(device.get('name', '')))}",
                _device({k: str(v) for k, v in device.items()}),
            )


def _mitigations(kernel: Mapping[str, str], states: Mapping[str, str]) -> str:
    """Return what the command line says of mitigations, and how many vulnerabilities have none."""
    words = kernel.get("command_line", "").split()
    parts = [word for word in words if word.startswith("mitigations=")]
    vulnerable = [text for text in states.values() if text.startswith("Vulnerable")]
    if vulnerable:
        parts.append(f"{len(vulnerable)} vulnerabilities open")
    return "; ".join(parts)


def _fio(fio: Mapping[str, str]) -> str:
    version, build = fio.get("version", ""), fio.get("build", "")
    if not version:
        return ""
    in_brackets = f" ({build})" if build else ""
    return f"{version.removeprefix('fio-')}{in_brackets}"


def _count(number: str, names: str) -> str:
    return f"{number} {names.removesuffix('s') if number == '1' else names}"


def _section(environment: Environment, name: str) -> dict[str, str]:
    texts = environment.get(name, {})
    if not isinstance(texts, dict):
        return {}
    return {key: str(text) for key, text in texts.items()}


def _target(target: Mapping[str, str], filesystem: Mapping[str, str]) -> str:
    """``/dev/sdb (block, 1 TiB)``, and on which filesystem."""
    if not target:
        return ""
    kind = [target.get("kind", "")]
    size_bytes = target.get("size_bytes", "")
    if size_bytes.isdigit():
        kind.append(size(int(size_bytes)))
    text = f"{target.get('path', '')} ({', '.join(kind)})"
    if filesystem.get("type"):
        text += f" on {filesystem['type']} {filesystem.get('options', '')}"
    return text


def _device(device: Mapping[str, str]) -> str:
    """Return what a device is, and the settings of its queue that decide on its speed."""
    hardware = [device.get(key, "0x") for key in ("vendor", "model")]
    # Virtual devices have the number of their vendor and no name.
    named = [text for text in hardware if not text.startswith("0x")]
    size_bytes = device.get("size_bytes", "")
    parts = [
        " ".join(named),
        _labelled("firmware", device, "firmware"),
        device.get("transport", ""),
        size(int(size_bytes)) if size_bytes.isdigit() else "",
        "rotating" if device.get("queue.rotational") == "1" else "",
    ]
    if device.get("queue.scheduler"):
        parts.append(f"scheduler {active(device['queue.scheduler'])}")
    parts.append(_labelled("nr_requests", device, "queue.nr_requests"))
    if "md.level" in device:
        layout = device.get("md.layout", "")
        parts.append(f"{device['md.level']} {layout}".strip())
    parts.append(_labelled("members", device, "members"))
    return ", ".join(filter(None, parts))


def _labelled(label: str, device: Mapping[str, str], key: str) -> str:
    return f"{label} {device[key]}" if key in device else ""


def _kib(text: str) -> str:
    words = text.split()
    if words[1:] == ["kB"] and words[0].isdigit():
        return size(1024 * int(words[0]))
    return text
