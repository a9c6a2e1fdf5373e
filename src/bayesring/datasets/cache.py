"""Sources of data files: a folder of the user's, or a download verified by checksum."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from bayesring.datasets.download_progress import DownloadProgress

GITHUB_FILE = "https://raw.githubusercontent.com/{repository}/{commit}/{path}"


def address(repository: str, commit: str, path: str) -> str:
    """Address of a file in a repository at a given commit."""
    return GITHUB_FILE.format(repository=repository, commit=commit, path=path)


def fetch(name: str, sha256: str | None, repository: str, commit: str, path: str) -> Path:
    """Path of a data file with the given checksum; None if the caller checks the contents.

    Looks for `name` in the folder given by ``BAYESRING_DATA`` if that is set; otherwise downloads
    it once to the user's cache, with a progress bar.
    """
    folder = os.environ.get("BAYESRING_DATA")
    if not folder:
        return _download(address(repository, commit, path), name, sha256)
    found = Path(folder) / name
    if not found.is_file():
        raise FileNotFoundError(
            f"BAYESRING_DATA names the folder {folder}, but {name} is not in it."
        )
    if sha256 and hashlib.sha256(found.read_bytes()).hexdigest() != sha256:
        raise ValueError(f"{found} is not the published file: its checksum differs.")
    return found


def _download(url: str, name: str, sha256: str | None) -> Path:
    """The file in the user's cache, downloaded if it is missing or damaged."""
    try:
        import pooch
    except ImportError:
        raise ImportError(
            "Downloading data sets needs pooch: pip install 'bayesring[data]'."
        ) from None
    cache = pooch.os_cache("bayesring") / Path(name).parent
    with DownloadProgress(name) as bar:
        try:
            retrieved = pooch.retrieve(
                url,
                f"sha256:{sha256}" if sha256 else None,
                Path(name).name,
                cache,
                downloader=pooch.HTTPDownloader(progressbar=bar),
            )
        except ValueError as error:
            raise ValueError(
                f"{url} does not give the published file: its checksum differs."
            ) from error
        except OSError as error:
            raise OSError(
                f"{name} is not here and could not be downloaded: connect to the network, or save "
                f"{url} as {name} in a folder and name that folder with BAYESRING_DATA."
            ) from error
    return Path(retrieved)
