"""Attempts to write, and what a folder holds."""

from __future__ import annotations

import os
import re

import pytest

from bayesring.data.writing import check_destination, replacing


def write(path, content="new", folder_format=None, then=lambda: None):
    """Write a file or a store, and do something else before it is done."""
    with replacing(path, folder_format) as temporary:
        if folder_format is not None:
            temporary.mkdir()
        (temporary if folder_format is None else temporary / ".zgroup").write_text(content)
        then()


def fail_with(error):
    def fail(*_):
        raise error

    return fail


def snapshot(folder):
    """All names, with what links and files hold."""
    found = {}
    for each in sorted(folder.rglob("*")):
        name = str(each.relative_to(folder))
        if each.is_symlink():
            found[name] = os.readlink(each)
        else:
            found[name] = each.read_bytes() if each.is_file() else None
    return found


def refused(path, error, message, folder_format=None):
    """Both the check and the write refuse, with one sentence."""
    for attempt in (check_destination, write):
        with pytest.raises(error, match=re.escape(message)) as caught:
            attempt(path, folder_format=folder_format)
        assert str(caught.value).endswith(".")
        assert str(caught.value).count("\n") == 0
        assert "Errno" not in str(caught.value)
