"""Hooks of the documentation site: pages that live at the root, and links that leave the site.

`CHANGELOG.md`, `CONTRIBUTING.md` and `VISION.md` become pages. A link from a page to a file of the
repository that is not on the site becomes a link to the repository, if the file exists; if it does
not, the link is left as it is, and the strict build fails.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
MOVED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "VISION.md": "vision.md",
    "README.md": "index.md",
}
"""Files of the root, and the pages that show them."""
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose text is a file of the root."""
    for source, page in MOVED.items():
        if not (ROOT / "docs" / page).exists():
            files.append(
                File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8"))
            )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links that leave `docs` to the page, or to the file in the repository."""
    uri = page.file.src_uri
    moved = {page: source for source, page in MOVED.items()}
    is_moved = uri in moved and not (ROOT / "docs" / uri).exists()
    home = Path(moved[uri] if is_moved else f"docs/{uri}").parent.as_posix()

    def lead(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        if re.match(r"[a-z]+:|/", target):
            return match[0]
        path = normpath(f"{home}/{target}")
        on_site = MOVED.get(path, path.removeprefix("docs/") if path.startswith("docs/") else "")
        file = files.get_file_from_path(on_site) if on_site else None
        if file is not None and not file.inclusion.is_excluded():
            here = Path(uri).parent.as_posix()
            return f"{before}{relpath(on_site, here)}{anchor or ''}{after}"
        if (ROOT / path).exists():
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"{before}{config.extra['repository']}/{kind}/main/{path}{anchor or ''}{after}"
        return match[0]

    return LINK.sub(lead, markdown)
