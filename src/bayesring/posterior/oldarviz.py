"""A tree that ArviZ 0.x takes for its own `InferenceData`, and everything else for a `DataTree`.

Functions of ArviZ 0.x accept `InferenceData` alone. Its metaclass is that of abstract base classes,
so a tree can be registered with it. It must then offer what those functions use: a group is a
`Dataset`, by item or by attribute, and `groups()` lists their names.
"""

from __future__ import annotations

from typing import Any

import xarray as xr


class GroupDataset(xr.Dataset):  # type: ignore[no-untyped-call]
    """Contents of a group, which can also be asked for its `dataset`, as a node can."""

    __slots__ = ()

    @property
    def dataset(self) -> xr.Dataset:
        """The same."""
        return self

    ds = dataset

    def to_dataset(self, inherit: bool = True) -> xr.Dataset:
        """The same as a plain `Dataset`."""
        return xr.Dataset(self.data_vars, self.coords, self.attrs)


class GroupPaths(tuple[str, ...]):
    """Paths of the nodes of a tree; a call lists the names of the groups."""

    __slots__ = ()

    def __call__(self) -> list[str]:
        """Names of the groups."""
        return [path.removeprefix("/") for path in self if path != "/"]


class LegacyTree(xr.DataTree):  # type: ignore[no-untyped-call]
    """A tree whose groups are copies, by item or attribute; its `children` are nodes."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, xr.DataTree) or found.children:
            return found
        return GroupDataset(found.data_vars, found.coords, found.attrs)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self.children:
            return self[name]
        return super().__getattr__(name)

    @property
    def groups(self) -> GroupPaths:
        """Paths of all nodes; called, the names of the groups."""
        return GroupPaths(super().groups)
