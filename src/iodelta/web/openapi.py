"""``/openapi.json``: every address and method, what it is asked, and what its documents and forms consist of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import msgspec

from iodelta import __version__
from iodelta.report.documents import described as schemas_of
from iodelta.web.negotiation import JSON
from iodelta.web.site import Problem

PAGE, PICTURE = "text/html", "image/svg+xml"
FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"


class Address(msgspec.Struct, frozen=True):
    """An address and method."""

    path: str
    endpoint: Callable[..., Any]
    summary: str
    answers: tuple[type, ...] | str = ()
    """The structs that its document may be, or the media type of another answer; empty: it leads elsewhere (303)."""
    asked: Mapping[str, str] = {}
    """What is asked for behind ``?``."""
    form: type | None = None
    """The fields that are posted; none of an address that is only read."""
    encoding: str = FORM
    refused: type | None = None
    """The document that says what is wrong with the fields (422), where it is one of its own."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """Return the structs of its documents and of its form."""
        several = () if isinstance(self.answers, str) else self.answers
        return tuple(
            kind
            for kind in (*several, self.form, self.refused)
            if kind not in (None, bytes)
        )


def described(addresses: tuple[Address, ...]) -> dict[str, Any]:
    """Return the description of these addresses."""
    kinds = list(
        dict.fromkeys([*chain.from_iterable(one.kinds for one in addresses), Problem])
    )
    made, components = schemas_of(kinds, "#/components/schemas/{name}")
    schemas = dict(zip(kinds, made, strict=True))

    def answered(summary: str, *kinds: type) -> dict[str, Any]:
        several = [schemas[kind] for kind in kinds]
        schema = several[0] if len(several) == 1 else {"anyOf": several}
        return {"description": summary, "content": {JSON: {"schema": schema}}}

    paths: dict[str, dict[str, Any]] = {}
    for one in addresses:
        path = re.sub(r":\w+}", "}", one.path)
        text = {"required": True, "schema": {"type": "string"}}
        inside = [
            {"name": name, "in": "path", **text}
            for name in re.findall(r"{(\w+)}", path)
        ]
        behind = [
            {
                "name": name,
                "in": "query",
                "description": about,
                "schema": {"type": "string"},
            }
            for name, about in one.asked.items()
        ]
        summary = one.summary if one.form is None else "Done."
        if isinstance(one.answers, str):
            responses = {"200": {"description": summary, "content": {one.answers: {}}}}
        elif one.answers:
            responses = {"200": answered(summary, *one.answers)}
        else:
            there = {"description": "What follows.", "schema": {"type": "string"}}
            responses = {
                "303": {"description": summary, "headers": {"Location": there}}
            }
        if one.refused is not None:
            responses["422"] = answered("What is wrong, field by field.", one.refused)
        responses["default"] = answered("Why it was not answered.", Problem)
        operation = {
            "summary": one.summary,
            "parameters": inside + behind,
            "responses": responses,
        }
        if one.form is not None:
            # What is sent as it is has no schema.
            content = {
                one.encoding: {} if one.form is bytes else {"schema": schemas[one.form]}
            }
            operation["requestBody"] = {"required": True, "content": content}
        paths.setdefault(path, {})["get" if one.form is None else "post"] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "iodelta serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }
