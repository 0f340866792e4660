"""What pages send back to change something."""

from __future__ import annotations

from typing import TypeVar

from starlette.requests import Request

from iodelta.web.fields import Signed, parsed
from iodelta.web.peers import is_same_user
from iodelta.web.security import DeniedError, Role, User, check_form

S = TypeVar("S", bound=Signed)

LONGEST = 2000
"""Characters of a text."""


FIELDS = 20
"""In a form; the one of an experiment has more."""


async def posted(request: Request, role: Role, kind: type[S], most: int = FIELDS) -> S:
    """Return a form that this user may send. Raises DeniedError."""
    check_change(request, role)
    user: User = request.scope["user"]
    async with request.form(max_files=0, max_fields=most) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    check_form(user, request.headers, fields.get("csrf", ""))
    if any(len(value) > LONGEST for value in fields.values()):
        raise DeniedError(413, f"a text has at most {LONGEST} characters")
    return parsed(fields, kind)


def check_change(request: Request, role: Role) -> None:
    """Raises DeniedError for a user who may not change anything in that role."""
    user: User = request.scope["user"]
    if not request.app.state.site.rules.write:
        raise DeniedError(
            403, "this server changes nothing; `iodelta serve --write` does"
        )
    if not user.may(role):
        raise DeniedError(403, f"this needs the role {role}")
    if not user.name and not is_same_user(request):
        raise DeniedError(
            403,
            "only the user who runs this server may start or change anything without a login",
        )
