"""Which host is measured next. A host has one task at a time, and so has a physical device that two hosts share.

Progress is in the experiment folders and in the fleet's journal, so a kill of this process costs only the trials in
flight. A host is tried again only because of the machine (it did not answer, somebody else measured there), never
because of its results.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from iodelta.errors import IodeltaError
from iodelta.fleet.events import FleetEvent, Moved, Seen, Sight, State
from iodelta.fleet.folder import FleetFolder
from iodelta.fleet.host import FleetHost
from iodelta.fleet.measuring import End, Order, measure
from iodelta.fleet.sight import Looked, look, said
from iodelta.lab.account import Account
from iodelta.lab.folder import ENVIRONMENT, Folder, now

PAUSES = (2.0, 5.0, 15.0, 30.0)
"""Seconds before a host that does not answer, or is in use, is tried again; the last one from then on."""

POLL = 1.0
"""Seconds between checks of windows, requests to stop, and finished tasks."""

LOOKS = 3
"""Most attempts to read the clock of a host whose experiment has ended."""

JUMP = 5.0
"""Seconds by which a clock may move against ours in one run before it is reported."""

CANCELLED, CLOSED, STOPPED = "cancelled", "its window is closed", "stopped"
"""Why a run is asked to end."""


class Policy(msgspec.Struct, frozen=True):
    """What the user chose."""

    in_use: Literal["wait", "skip"] = "wait"
    """What to do with a host on whose device somebody else measures."""
    patience: float = 900.0
    """Seconds to wait for a host that does not answer."""
    destroy: Mapping[str, tuple[str, ...]] = {}
    """Host -> devices that may be overwritten there."""
    allow_commands: bool = False
    """Whether commands that may write anywhere may run."""


class _Post:
    """What is known of one host in this call."""

    def __init__(
        self, host: FleetHost, state: Moved | None, sight: Sight | None
    ) -> None:
        self.host = host
        self.name = host.name
        self.state = state
        self.sight = sight
        """From the last look, which may be an earlier call's."""
        self.is_fresh = False
        """Whether it was looked at since its last run."""
        self.task: Any = None
        self.not_before = 0.0
        self.tries = 0
        self.away_since: float | None = None
        self.progress = 0
        self.over = False
        """Whether this call has nothing more to do with it."""

    @property
    def is_running(self) -> bool:
        """Return whether it is being measured now."""
        return (
            self.task is not None
            and self.state is not None
            and self.state.state == "running"
        )

    @property
    def in_window(self) -> bool:
        """Return whether it may be measured at this time of the day."""
        clock = time.localtime()
        return self.host.is_open(60 * clock.tm_hour + clock.tm_min)


class Coordinator:
    """One call of ``iodelta fleet run``, with the journal held."""

    def __init__(
        self,
        folder: FleetFolder,
        hosts: Sequence[FleetHost],
        policy: Policy,
        *,
        client: Any,
        most: int,
        stop: Callable[[], bool],
        say: Callable[[str], None],
    ) -> None:
        """``client`` is dask's, ``most`` the number of its threads."""
        self._folder, self._policy, self._client, self._most = (
            folder,
            policy,
            client,
            most,
        )
        self._stop, self._say = stop, say
        self._experiment = folder.experiment()
        begun = folder.begun()
        self._identifier = begun.identifier if begun else ""
        events = folder.journal.events()
        self._states = last_states(events)
        self._sights = {
            event.name: event.sight for event in events if isinstance(event, Seen)
        }
        self._posts = [
            _Post(host, self._states.get(host.name), self._sights.get(host.name))
            for host in hosts
        ]
        self._by_name = {post.name: post for post in self._posts}

    def run(self) -> None:
        """Until every host has ended, or the user stops it. Raises MeasureError when the journal cannot be written."""
        for post in self._posts:
            self._folder.stop(post.name).unlink(missing_ok=True)
            if post.state is not None and post.state.state in ("done", "drained"):
                post.over = self._account(post.name).over
        try:
            while not self._stop() and any(
                post.task is not None or (not post.over and self._is_open(post))
                for post in self._posts
            ):
                self._send()
                self._collect()
        finally:
            self._end()

    def _is_open(self, post: _Post) -> bool:
        """Return whether its window is open and nobody cancelled it."""
        return post.in_window and not self._folder.stop(post.name).exists()

    # ------------------------------------------------------------------------------------------------ sending

    def _send(self) -> None:
        busy = sum(post.task is not None for post in self._posts)
        for post in self._posts:
            is_idle = (
                not post.over
                and post.task is None
                and time.monotonic() >= post.not_before
            )
            if busy >= self._most or not is_idle or not self._is_open(post):
                continue
            if not post.is_fresh:
                self._look(post)
                busy += 1
            elif self._is_free(post):
                self._move(post, "running")
                place, own = (
                    str(self._folder.path.absolute()),
                    self._policy.destroy.get(post.name, ()),
                )
                order = Order(
                    place, self._identifier, post.name, own, self._policy.allow_commands
                )
                post.task = self._client.submit(measure, order, pure=False)
                busy += 1

    def _look(self, post: _Post) -> None:
        place, recorded = self._folder.place(post.name), None
        try:
            path = post.host.target(self._experiment.target.path)
            if (place / ENVIRONMENT).exists():  # in which its experiment began
                recorded = Folder(place).read_struct(ENVIRONMENT, dict)
        except IodeltaError as error:
            self._over(post, "failed", said(error), error.remedy)
            return
        words = (post.name, post.host.machine, path, self._experiment, recorded)
        post.task = self._client.submit(look, *words, pure=False)

    def _is_free(self, post: _Post) -> bool:
        """Return whether neither its host nor its device is measured, or was, under another name: counted twice, one
        machine would pass for two that agree."""
        for other in self._posts:
            if other is post:
                break
            # Of two names for one device the first one is measured, however long its first look takes.
            if other.task is not None and other.sight is None and not other.tries:
                return False
        for name, sight in self._sights.items():
            if (
                name != post.name
                and post.sight is not None
                and _same_device(post.sight, sight)
                and self._counts_before(name, post)
            ):
                what = (
                    f"the same host and device as {name}: one machine is measured once"
                )
                self._over(
                    post,
                    "skipped",
                    what,
                    "remove one of the two names from the inventory",
                )
                return False
        for other in self._posts:
            if (
                other is post
                or not other.is_running
                or other.sight is None
                or post.sight is None
            ):
                continue
            what = ""
            if post.sight.boot == other.sight.boot:
                what = f"the same host as {other.name}"
            elif post.sight.lasting and post.sight.lasting == other.sight.lasting:
                what = f"the same device as {other.name} has"
            if what:
                self._move(post, "waiting", f"{what}, which is measured first")
                return False
        return True

    def _counts_before(self, name: str, post: _Post) -> bool:
        """Return whether the other of two names for one host and device is the one to measure."""
        other = self._by_name.get(name)
        state = other.state if other else self._states.get(name)
        if state is not None and state.state in ("running", "done", "drained"):
            return True
        return other is not None and not other.over and name < post.name

    # --------------------------------------------------------------------------------------------- collecting

    def _collect(self) -> None:
        """Settle the tasks that have ended; wait up to ``POLL`` for one."""
        end = time.monotonic() + POLL
        while time.monotonic() < end and not self._stop():
            ended = [
                post
                for post in self._posts
                if post.task is not None and post.task.done()
            ]
            for post in ended:
                self._settle(post)
            if ended:
                return
            time.sleep(POLL / 10)
        for post in self._posts:
            if post.is_running and not post.in_window:
                self._ask_to_end(post, CLOSED)

    def _settle(self, post: _Post) -> None:
        task, post.task = post.task, None
        try:
            answer = task.result()
        except Exception as error:  # noqa: BLE001  # what a worker that died, or another version there, raises
            what = f"the worker failed: {type(error).__name__}: {error}"
            self._over(
                post, "failed", " ".join(what.split()), "look at the workers' own logs"
            )
            return
        if isinstance(answer, Looked):
            self._seen(post, answer)
        else:
            self._ended(post, answer)

    def _seen(self, post: _Post, answer: Looked) -> None:
        sight, before = answer.sight, post.sight
        if sight is None:
            if (
                post.over
            ):  # the look at its clock after its end; a busy host may be slow to answer
                post.tries += 1
                if answer.trouble == "away" and post.tries < LOOKS and not self._stop():
                    self._look(post)
            elif answer.trouble == "away":
                self._away(post, answer.reason, answer.remedy)
            else:
                self._over(post, "failed", answer.reason, answer.remedy)
            return
        post.sight, post.is_fresh = sight, True
        self._sights[post.name] = sight
        self._folder.journal.append(Seen(now(), post.name, sight))
        if before is not None and before.boot != sight.boot:
            self._say(f"{post.name}: was rebooted since it was last seen")
        if before is not None and abs(before.ahead - sight.ahead) > JUMP:
            self._say(
                f"{post.name}: its clock moved by {sight.ahead - before.ahead:+.0f} s against this one"
            )
        if sight.differs and not post.over:
            what = f"its environment differs from the one that its experiment began in: {'; '.join(sight.differs)}"
            self._over(
                post,
                "drained",
                what,
                "bring it back to what it was, or begin a new fleet folder",
            )

    def _ended(self, post: _Post, end: End) -> None:
        post.is_fresh = False
        if self._asked(post) == CLOSED:
            self._folder.stop(post.name).unlink(missing_ok=True)
        match end.kind:
            case "done" | "drained":
                self._over(post, end.kind, end.reason, end.remedy, end.rate)
                post.tries = 0
                if not self._stop():
                    self._look(post)  # at its clock
            case "failed":
                self._over(post, "failed", end.reason, end.remedy)
            case "away":
                self._away(post, end.reason, end.remedy)
            case "busy" if self._policy.in_use == "skip":
                self._over(post, "skipped", end.reason, end.remedy)
            case "busy" | "held":
                self._pause(post)
                self._move(post, "waiting", end.reason, end.remedy)
            case _:
                self._move(post, "waiting", self._asked(post) or STOPPED)

    def _away(self, post: _Post, reason: str, remedy: str) -> None:
        """It does not answer: wait, unless that has lasted too long without a finished trial in between."""
        finished = len(self._account(post.name).finished)
        if post.away_since is None or finished > post.progress:
            post.away_since, post.tries = time.monotonic(), 0
        post.progress, post.is_fresh = finished, False
        if time.monotonic() - post.away_since >= self._policy.patience:
            self._over(post, "lost", reason, remedy)
            return
        self._pause(post)
        self._move(post, "waiting", f"it does not answer: {reason}", remedy)

    def _pause(self, post: _Post) -> None:
        post.not_before = time.monotonic() + PAUSES[min(post.tries, len(PAUSES) - 1)]
        post.tries += 1

    def _account(self, name: str) -> Account:
        """Return the state of its experiment folder; an empty one before there is a folder, or where it cannot be read."""
        with contextlib.suppress(IodeltaError):
            return Account(Folder(self._folder.place(name)).events())
        return Account()

    # ------------------------------------------------------------------------------------------------- ending

    def _end(self) -> None:
        """Ask every run to end, wait for that, and record the state of the other hosts."""
        running = [post for post in self._posts if post.task is not None]
        for post in running:
            self._ask_to_end(post, STOPPED)
        for post in running:
            post.task.exception()  # waits; all have ended before anything here can fail
        for post in running:
            self._settle(post)
        for post in self._posts:
            if post.over:
                continue
            reason = self._asked(post)
            if reason in ("", CLOSED) and not post.in_window:
                what = f"outside its window ({post.host.window})"
                self._move(post, "skipped", what, "call it again in its window")
            elif reason or post.state is None or post.state.state == "running":
                self._move(post, "waiting", reason or STOPPED)

    def _ask_to_end(self, post: _Post, reason: str) -> None:
        stop = self._folder.stop(post.name)
        if not stop.exists():
            with contextlib.suppress(OSError):  # on a full disk it is empty, and there
                stop.parent.mkdir(exist_ok=True)
                stop.write_text(reason)

    def _asked(self, post: _Post) -> str:
        """Return why its run was asked to end; empty when it was not."""
        try:
            return self._folder.stop(post.name).read_text() or STOPPED
        except OSError:
            return ""

    def _over(
        self,
        post: _Post,
        state: State,
        reason: str = "",
        remedy: str = "",
        rate: float | None = None,
    ) -> None:
        post.over = True
        self._move(post, state, reason, remedy, rate)

    def _move(
        self,
        post: _Post,
        state: State,
        reason: str = "",
        remedy: str = "",
        rate: float | None = None,
    ) -> None:
        before = post.state
        post.state = Moved(now(), post.name, state, reason, remedy, rate)
        if before is None or (before.state, before.reason) != (state, reason):
            self._folder.journal.append(post.state)
            self._say(f"{post.name}: {state}{f': {reason}' if reason else ''}")


def last_states(events: Sequence[FleetEvent]) -> dict[str, Moved]:
    """Return the state of every host that has one."""
    return {event.name: event for event in events if isinstance(event, Moved)}


def _same_device(first: Sight, other: Sight) -> bool:
    same_host = first.boot == other.boot and bool(
        set(first.devices) & set(other.devices)
    )
    return same_host or bool(
        first.lasting
        and (first.lasting, first.machine) == (other.lasting, other.machine)
    )
