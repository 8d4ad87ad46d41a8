"""What the tests of the page share: the stub, the browser, and a page that is watched."""

from collections.abc import Iterator
from typing import Any

import pytest

from . import stub
from .browser import Tab, chromium


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with stub.serving() as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: Any, address: str) -> Iterator[Tab]:
    """A page of its own. Whatever a test does, nothing may leave the machine or go wrong inside."""
    made = Tab(browser)
    yield made
    made.context.close()
    assert made.complaints == []
    assert [url for url in made.requests if not url.startswith((address, "file:", "about:"))] == []
