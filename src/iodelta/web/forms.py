"""What pages send back to change something."""

from __future__ import annotations

from starlette.requests import Request

from iodelta.web.security import DeniedError, Role, User, check_form

LONGEST = 2000
"""Characters of a text."""


async def posted(request: Request, role: Role) -> dict[str, str]:
    """The fields of a form that this user may send. Raises DeniedError."""
    user: User = request.scope["user"]
    if not request.app.state.site.rules.write:
        raise DeniedError(
            403, "this server changes nothing; `iodelta serve --write` does"
        )
    if not user.may(role):
        raise DeniedError(403, f"this needs the role {role}")
    async with request.form(max_files=0, max_fields=20) as form:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
    check_form(user, request.headers, fields.get("csrf", ""))
    if any(len(value) > LONGEST for value in fields.values()):
        raise DeniedError(413, f"a text has at most {LONGEST} characters")
    return fields
