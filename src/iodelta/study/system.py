"""The system in the few lines that a reader of a mail needs; no host name, serial number or address is among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from iodelta.knob.files import active
from iodelta.lab.folder import ENVIRONMENT, Folder
from iodelta.probe.environment import sound
from iodelta.study.words import inert, size

Environment = Mapping[str, Any]

CLOCK = ("governor", "driver", "epp", "boost", "idle_governor")
"""What decides on the clock of the CPUs."""


def recorded_environment(folder: Folder) -> dict[str, Any]:
    """What a folder says of its machine; empty where the run was killed before it recorded one. Raises MeasureError."""
    if not folder.has(ENVIRONMENT):
        return {}
    return sound(folder.read_struct(ENVIRONMENT, dict[str, Any]))


def system(environment: Environment) -> tuple[tuple[str, str], ...]:
    """Name and value of what matters most, from a recorded environment; what it lacks is left out."""
    return tuple((name, inert(text)) for name, text in _facts(environment) if text)


def _facts(environment: Environment) -> Iterator[tuple[str, str]]:
    kernel = _section(environment, "kernel")
    cpu = _section(environment, "cpu")
    yield "machine", _machine(_section(environment, "host"))
    yield "CPU", _processors(cpu, _section(environment, "numa"))
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


def _machine(host: Mapping[str, str]) -> str:
    model = " ".join(host[key] for key in ("vendor", "product") if key in host)
    virtual = "virtual machine" if host.get("virtual") == "yes" else ""
    container = f"in a container ({host['container']})" if "container" in host else ""
    return ", ".join(
        filter(None, (model, virtual, container, host.get("distribution", "")))
    )


def _processors(cpu: Mapping[str, str], numa: Mapping[str, str]) -> str:
    if not cpu:
        return ""
    counts = [
        _count(cpu.get(name, "?"), name) for name in ("sockets", "cores", "threads")
    ]
    nodes = len({key.partition(".")[0] for key in numa})
    if nodes > 1:
        counts.append(f"{nodes} NUMA nodes")
    return f"{cpu.get('model', 'unknown')}: {', '.join(counts)}"


def _mitigations(kernel: Mapping[str, str], states: Mapping[str, str]) -> str:
    parts = [
        word
        for word in kernel.get("command_line", "").split()
        if word.startswith("mitigations=")
    ]
    vulnerable = sum(text.startswith("Vulnerable") for text in states.values())
    if vulnerable:
        parts.append(f"{vulnerable} vulnerabilities open")
    return "; ".join(parts)


def _fio(fio: Mapping[str, str]) -> str:
    if not fio.get("version"):
        return ""
    build = f" ({fio['build']})" if fio.get("build") else ""
    return f"{fio['version'].removeprefix('fio-')}{build}"


def _count(number: str, names: str) -> str:
    return f"{number} {names.removesuffix('s') if number == '1' else names}"


def _section(environment: Environment, name: str) -> dict[str, str]:
    texts = environment.get(name, {})
    if not isinstance(texts, dict):
        return {}
    return {key: str(text) for key, text in texts.items()}


def _target(target: Mapping[str, str], filesystem: Mapping[str, str]) -> str:
    text = f"{target.get('path', '')} ({target.get('kind', '')}"
    if target.get("size_bytes", "").isdigit():
        text += f", {size(int(target['size_bytes']))}"
    mounted = (
        f" on {filesystem['type']} {filesystem.get('options', '')}"
        if filesystem.get("type")
        else ""
    )
    if not target:
        return ""
    return f"{text}){mounted}"


def _device(device: Mapping[str, str]) -> str:
    spinning = {"1": "rotating", "0": ""}.get(device.get("queue.rotational", ""), "")
    hardware = " ".join(
        device[key]
        for key in ("vendor", "model")
        if not device.get(key, "0x").startswith("0x")
    )
    parts = [
        hardware,
        f"firmware {device['firmware']}" if "firmware" in device else "",
        device.get("transport", ""),
        size(int(device["size_bytes"]))
        if device.get("size_bytes", "").isdigit()
        else "",
        spinning,
        f"scheduler {active(device['queue.scheduler'])}"
        if device.get("queue.scheduler")
        else "",
        f"nr_requests {device['queue.nr_requests']}"
        if "queue.nr_requests" in device
        else "",
        f"{device['md.level']} {device.get('md.layout', '')}".strip()
        if "md.level" in device
        else "",
        f"members {device['members']}" if "members" in device else "",
    ]
    return ", ".join(filter(None, parts))


def _kib(text: str) -> str:
    words = text.split()
    if words[1:] == ["kB"] and words[0].isdigit():
        return size(1024 * int(words[0]))
    return text
