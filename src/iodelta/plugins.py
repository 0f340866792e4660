"""What installed packages add by entry points: knobs, audit rules, readers and machines.

Nothing of a plugin is trusted: what it raises (``SystemExit`` too), what it returns and how long it takes are checked
where it crosses into iodelta. A plugin that cannot be used is a sentence that names it; everything else goes on.
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import inspect
import os
import re
import reprlib
import signal
import sys
import threading
import time
import types
import typing
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

from iodelta.errors import IodeltaError, RequestError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "knob": "iodelta.knobs",
    "rule": "iodelta.rules",
    "reader": "iodelta.readers",
    "machine": "iodelta.machines",
    "part": "iodelta.parts",
}
"""Kind -> group of its entry points."""

SECONDS = 60.0
"""How long a plugin may take to load, or to answer once."""

Check = Callable[[str, Any], str]
"""Name of an entry point and what it loads in; why that cannot be used out, empty where it can."""


class PluginError(RequestError):
    """A plugin failed, took too long, or returned what it must not: no defect of iodelta."""


class _Late(BaseException):
    """No Exception, so that a plugin does not catch it by mistake."""


class Plugin(NamedTuple):
    """One entry point, loaded or not."""

    kind: str
    name: str
    package: str
    version: str
    made: Any
    trouble: str
    """Why it cannot be used, in a sentence that names it; empty where it can."""

    @property
    def title(self) -> str:
        """``the knob acme of the package iodelta-acme 1.0``."""
        return (
            f"the {self.kind} {self.name} of the package {self.package} {self.version}"
        )


@functools.cache
def plugins(kind: str, check: Check) -> tuple[Plugin, ...]:
    """Return the plugins of one kind, by package and name, each loaded and checked once."""
    if not _declared(GROUPS[kind]):
        return ()
    from importlib.metadata import entry_points

    entries = sorted(
        entry_points(group=GROUPS[kind]),
        key=lambda entry: (_package(entry), entry.name),
    )
    return tuple(_loaded(kind, entry, check) for entry in entries)


def _declared(group: str) -> bool:
    """Look whether a package may have entries of a group: importing ``importlib.metadata`` takes half as long as --help."""
    for place in sys.path:
        try:
            packages = [
                name
                for name in os.listdir(place or ".")
                if name.endswith((".dist-info", ".egg-info"))
            ]
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            continue
        for name in packages:
            with (
                contextlib.suppress(OSError),
                open(os.path.join(place, name, "entry_points.txt"), "rb") as file,
            ):
                if group.encode() in file.read():
                    return True
    return False


def _loaded(kind: str, entry: EntryPoint, check: Check) -> Plugin:
    version = entry.dist.version if entry.dist is not None else ""
    plugin = Plugin(kind, entry.name, _package(entry), version, None, "")
    try:
        made, trouble = guarded(
            "loading it", lambda: (made := entry.load(), check(entry.name, made))
        )()
    except IodeltaError as error:
        made, trouble = None, error.what
    message = f"{plugin.title} cannot be used: {trouble}" if trouble else ""
    return plugin._replace(made=made, trouble=message)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def sound(kind: str, check: Check) -> Iterator[Plugin]:
    """Yield those that can be used."""
    return (plugin for plugin in plugins(kind, check) if not plugin.trouble)


def troubles(kind: str, check: Check) -> str:
    """Return sentences about those that cannot, for the message about an unknown name; empty without any."""
    return "; ".join(
        plugin.trouble for plugin in plugins(kind, check) if plugin.trouble
    )


def guarded(
    title: str,
    call: Callable[..., Any],
    returns: Any = Any,
    seconds: float | None = 0.0,
) -> Callable[..., Any]:
    """Return ``call`` with everything that it does wrong as a PluginError that begins with ``title``.

    It may take ``seconds`` (0: ``SECONDS``; None: any time) and must return a ``returns``, a type as in an annotation; an
    iterator is read to its end. Errors of iodelta pass, since a plugin may raise them, and so does Ctrl-C.
    """

    @functools.wraps(call)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            with _bounded(SECONDS if seconds == 0.0 else seconds):
                value = call(*args, **options)
                if typing.get_origin(returns) in (
                    collections.abc.Iterator,
                    collections.abc.Iterable,
                ):
                    value = (
                        tuple(value)
                        if isinstance(value, collections.abc.Iterable)
                        else value
                    )
                wrong = misfit(value, returns)
        except (IodeltaError, KeyboardInterrupt):
            raise
        except _Late:
            text = f"took longer than {SECONDS if seconds == 0.0 else seconds:g} s"
        except BaseException as error:  # noqa: BLE001 (whatever the code of others raises)
            message = ""
            with contextlib.suppress(Exception):
                message = " ".join(str(error).split())[:300]
            text = f"failed with {type(error).__name__}" + (
                f": {message}" if message else ""
            )
        else:
            if not wrong:
                return value
            text = f"returned {wrong}"
        raise PluginError(
            f"{title} {text}", remedy="tell its author, or uninstall the package"
        )

    return checked


@contextlib.contextmanager
def _bounded(seconds: float | None) -> Iterator[None]:
    """Raise _Late after ``seconds``, and every second from then on, unless another alarm rings before. Only the main
    thread can be interrupted."""
    rest, _ = signal.getitimer(signal.ITIMER_REAL)
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or 0.0 < rest <= seconds:
        yield
        return

    def ring(number: int, frame: types.FrameType | None) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, ring)
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(
            signal.ITIMER_REAL,
            max(rest - (time.monotonic() - started), 0.001) if rest else 0.0,
        )
        signal.signal(signal.SIGALRM, before)


def misfit(value: Any, hint: Any, place: str = "") -> str:
    """Return why ``value`` is not of the type ``hint``, to the last field of a struct; empty if it is."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    kind: Any = origin or (type(None) if hint is None else hint)
    expected = re.sub(
        r"\b(?:\w+\.)+",
        "",
        str(hint) if parts else getattr(kind, "__name__", str(hint)),
    )
    expected = expected.replace("NoneType", "None")
    wrong = f"{place}{' = ' if place else ''}{reprlib.repr(value)} ({type(value).__name__}), where {expected} is expected"
    if hint is Any:
        return ""
    if origin in (Union, types.UnionType):
        found = {part: misfit(value, part, place) for part in parts}
        own = [
            found[part]
            for part in parts
            if isinstance(part, type) and isinstance(value, part)
        ]
        return (own[0] if own else wrong) if all(found.values()) else ""
    if origin is Literal:
        return "" if value in parts else wrong
    if origin is typing.ClassVar:
        return misfit(value, parts[0], place)
    if kind is collections.abc.Callable:
        return "" if callable(value) else wrong
    if getattr(kind, "_is_protocol", False) and not issubclass(
        kind, contextlib.AbstractContextManager
    ):
        lacking = [name for name in _members(kind) if not hasattr(value, name)]
        return (
            f"{place}{type(value).__name__}, which lacks {', '.join(lacking)}"
            if lacking
            else ""
        )
    if kind in (collections.abc.Iterator, collections.abc.Sequence):
        kind = collections.abc.Iterable
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind in (int, float)):
        return wrong
    if isinstance(value, str):
        return wrong if kind is collections.abc.Iterable else ""
    inner: list[tuple[str, Any, Any]] = []
    if hasattr(value, "__struct_fields__") or hasattr(value, "__dataclass_fields__"):
        struct: Any = type(value)
        place = place or struct.__name__
        inner = [
            (f".{name}", getattr(value, name), part)
            for name, part in _fields(struct).items()
        ]
    elif isinstance(value, collections.abc.Mapping) and parts:
        for key, item in value.items():
            inner += [(f"[{key!r}]", key, parts[0]), (f"[{key!r}]", item, parts[1])]
    elif kind is tuple and parts and parts[-1] is not Ellipsis:
        if len(value) != len(parts):
            return wrong
        inner = [(f"[{index}]", item, parts[index]) for index, item in enumerate(value)]
    elif isinstance(value, (tuple, list, set, frozenset)) and parts:
        inner = [(f"[{index}]", item, parts[0]) for index, item in enumerate(value)]
    return next(
        filter(
            None, (misfit(item, part, place + suffix) for suffix, item, part in inner)
        ),
        "",
    )


@functools.cache
def _fields(kind: Any) -> dict[str, Any]:
    names = getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__
    hints = typing.get_type_hints(kind)
    return {name: hints[name] for name in names}


@functools.cache
def _members(protocol: type) -> tuple[str, ...]:
    names = {*vars(protocol), *inspect.get_annotations(protocol)}
    return tuple(sorted(name for name in names if not name.startswith("_")))
