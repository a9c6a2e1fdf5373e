"""Where data files come from: a folder of the user's, or a download with a checksum."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

GITHUB_FILE = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"


def fetch(name: str, sha256: str, repository: str, commit: str, path: str) -> Path:
    """Path of a data file whose content has the given checksum.

    Looks for `name` in the folder named by ``BAYESRING_DATA``; otherwise downloads it once into
    the user's cache.
    """
    folder = os.environ.get("BAYESRING_DATA")
    if folder:
        found = Path(folder) / name
        if not found.is_file():
            raise FileNotFoundError(
                f"BAYESRING_DATA names the folder {folder}, but {name} is not in it."
            )
        if hashlib.sha256(found.read_bytes()).hexdigest() != sha256:
            raise ValueError(f"{found} is not the published file: its checksum differs.")
        return found
    try:
        import pooch
    except ImportError:
        raise ImportError(
            "Downloading data sets needs pooch: pip install 'bayesring[data]'."
        ) from None
    url = GITHUB_FILE.format(repository=repository, commit=commit, path=path)
    cache = pooch.os_cache("bayesring") / Path(name).parent
    return Path(pooch.retrieve(url, f"sha256:{sha256}", Path(name).name, cache))
