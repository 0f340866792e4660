"""Every kind of result has every format."""

from __future__ import annotations

from iodelta.part import documents, kinds, load


def test_every_kind_names_a_struct_and_functions_that_exist() -> None:
    for kind in kinds().values():
        assert isinstance(load(kind.result), type)
        for place in kind[1:]:
            assert not place or callable(load(place)), place


def test_every_kind_has_a_document() -> None:
    structs = {document.struct for document in documents().values()}
    assert [kind.result for kind in kinds().values() if kind.result not in structs and not kind.document] == []
