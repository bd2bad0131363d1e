"""`python -m tests.mutations` takes long; that each guard is still where it looks for it is seen at once."""

from pathlib import Path

import pytest

from tests.mutations.cases import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_each_guard_stands_where_it_is_to_be_removed(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert [test for test in mutation.tests if not (ROOT / test).is_file()] == []
