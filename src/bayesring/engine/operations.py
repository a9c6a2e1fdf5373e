"""How the slices of a core are drawn: jointly, or entry by entry. Each works on one block."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bayesring.infer.streams import Purpose, Streams
from bayesring.kernels import entries as entries_kernel
from bayesring.kernels import entrywise as entrywise_kernel
from bayesring.kernels import slices as slices_kernel
from bayesring.likelihoods.likelihood import Likelihood
from bayesring.data.observations import Block
from bayesring.model.ring import FlatRing
from bayesring.model.types import FloatArray, SlicePrior, WorkingResponse


class CoreTask(NamedTuple):
    """All that a block needs, besides its own data, to draw its slices."""

    mode: int
    flat: FlatRing
    """The ring with its weights folded in."""
    weights: FloatArray
    """lambda^(d), (S R_d,)."""
    core: FloatArray
    """G^(d) as it stands, (I_d, S, R_{d-1}, R_d)."""
    slice_prior: SlicePrior
    likelihood: Likelihood
    nuisance: FloatArray
    streams: Streams
    scan: int


class Update(NamedTuple):
    """A way to draw the slices of a block."""

    draw: Callable[[CoreTask, Block], tuple[FloatArray, ...]]
    """Returns slices (J, K), and sums w a a' and s a for the bond's weights, equation (7); or, for
    a part of a slice, the statistics (4)."""
    cuts_slices: bool
    """Whether a large slice may be cut into blocks of its own."""
    diagonal_only: bool
    """Whether it needs a prior with independent entries."""


def draw_jointly(task: CoreTask, block: Block) -> tuple[FloatArray, ...]:
    """All entries of a slice at once, equations (4) to (6)."""
    working = working_response(task, block)
    arguments = (*task.flat, task.mode, block.others, block.bounds, *working)
    if block.is_part:
        return (slices_kernel.slice_statistics(*arguments),)
    prior, (diagonal, linear) = task.slice_prior, _own_terms(task, block)
    return slices_kernel.draw_slices(  # type: ignore[no-any-return]
        *arguments,
        task.weights,
        prior.precision,
        diagonal,
        linear,
        _noise(task, block),
    )


def draw_entrywise(task: CoreTask, block: Block) -> tuple[FloatArray, ...]:
    """One entry after the other, given the rest of its slice, equation (6')."""
    slices = task.core[_slices(block)]
    return entrywise_kernel.draw_entries(  # type: ignore[no-any-return]
        *task.flat,
        task.mode,
        block.others,
        block.bounds,
        *working_response(task, block),
        task.weights,
        slices.reshape(len(slices), -1),
        *_own_terms(task, block),
        _noise(task, block),
    )


JOINT = Update(draw_jointly, cuts_slices=True, diagonal_only=False)
ENTRYWISE = Update(draw_entrywise, cuts_slices=False, diagonal_only=True)
UPDATES = {"slice": JOINT, "entry": ENTRYWISE}


def working_response(task: CoreTask, block: Block) -> WorkingResponse:
    """w_n and s_n of the block's observations, drawn anew in every pass if they are random."""
    if not task.likelihood.augments:
        return task.likelihood.augment(None, block.values, block.values, task.nuisance)
    fitted = entries_kernel.entries(*task.flat, task.mode, block.own, block.others, block.bounds[0])
    rng = task.streams.rng(task.scan, Purpose.AUGMENT, task.mode, block.number)
    return task.likelihood.augment(rng, fitted, block.values, task.nuisance)


def _slices(block: Block) -> slice:
    return slice(block.first, block.first + block.bounds.size - 1)


def _own_terms(task: CoreTask, block: Block) -> tuple[FloatArray, FloatArray]:
    """Diagonal and linear terms of the prior of the block's slices."""
    prior = task.slice_prior
    own = slice(None) if len(prior.linear) == 1 else _slices(block)
    return prior.diagonal[own], prior.linear[own]


def _noise(task: CoreTask, block: Block) -> FloatArray:
    rng = task.streams.rng(task.scan, Purpose.SLICES, task.mode, block.number)
    return rng.standard_normal((block.bounds.size - 1, len(task.slice_prior.precision)))
