# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls as operators of the graphs that torch.compile makes."""

import itertools
import weakref
from typing import Any, Optional

import torch

from .torch_systems import Energies, Gradients, Tangents


class InGraphs(torch.nn.Module):
    """A module whose calls are operators of the graphs of torch.compile."""

    def __init__(self):
        super().__init__()
        self._number = _note(self)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._number = _note(self)

    def _in_graph(self, positions, charges, cells, batch=None, ptr=None):
        """Energies, [systems]."""
        return _energies_of_graph(positions, charges, cells, batch, ptr, self._number)[0]

    def _given_in_graph(self, positions, charges, cells, batch, ptr):
        """What a function of autograd is given, but for what is wanted."""
        raise NotImplementedError


@torch.compiler.assume_constant_result  # type: ignore[misc]
def is_transformed():
    """Whether torch.func transforms what is traced: operators of graphs have no derivatives for it."""
    return torch._C._functorch.peek_interpreter_stack() is not None


#: Modules by the numbers that graphs have for them.
_modules: Any = weakref.WeakValueDictionary()
_numbers = itertools.count()


def _note(module):
    number = next(_numbers)
    _modules[number] = module
    return number


# Operators of graphs: x, q, cells, batch, ptr, the number of a module, and what each has besides. An operator has one
# derivative: energies have gradients, these have products with the Hessian.
_OfGraph = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@torch.library.custom_op("farfield::energies", mutates_args=())
def _energies_of_graph(
    x: torch.Tensor,
    q: torch.Tensor,
    cells: Optional[torch.Tensor],
    batch: Optional[torch.Tensor],
    ptr: Optional[torch.Tensor],
    module: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Energies, and their gradients by positions, charges and cells: of no cells there are none."""
    given = _modules[module]._given_in_graph(x, q, cells, batch, ptr)
    wanted = True, cells is not None
    energies = Energies.forward(*given, wanted)
    return energies, *_as_inputs(Gradients.forward(*given, wanted), x, q, cells)


@torch.library.custom_op("farfield::gradients", mutates_args=())
def _gradients_of_graph(
    x: torch.Tensor,
    q: torch.Tensor,
    cells: Optional[torch.Tensor],
    batch: Optional[torch.Tensor],
    ptr: Optional[torch.Tensor],
    module: int,
    by_x: torch.Tensor,
    by_q: torch.Tensor,
    by_cells: torch.Tensor,
) -> _OfGraph:
    """The gradients that farfield::energies has found, with derivatives."""
    return by_x.clone(), by_q.clone(), by_cells.clone()


@torch.library.custom_op("farfield::tangents", mutates_args=())
def _tangents_of_graph(
    x: torch.Tensor,
    q: torch.Tensor,
    cells: Optional[torch.Tensor],
    batch: Optional[torch.Tensor],
    ptr: Optional[torch.Tensor],
    module: int,
    dx: torch.Tensor,
    dq: torch.Tensor,
    dcells: torch.Tensor,
) -> _OfGraph:
    """Products of the Hessian with a direction."""
    *inputs, systems = _modules[module]._given_in_graph(x, q, cells, batch, ptr)
    changes = None if cells is None or not dcells.any() else dcells.to(inputs[2])
    found = Tangents.forward(*inputs, dx, dq, changes, systems, (True, cells is not None))
    return _as_inputs(found, x, q, cells)


def _as_inputs(found, x, q, cells):
    of_cells = x.new_empty(0) if cells is None else found[2].to(cells)
    return found[0].to(x).contiguous(), found[1].reshape(q.shape).contiguous(), of_cells.contiguous()


def _like_inputs(x, q, cells):
    return torch.empty_like(x), torch.empty_like(q), x.new_empty(0) if cells is None else torch.empty_like(cells)


@_energies_of_graph.register_fake
def _like_energies(x, q, cells, batch, ptr, module):
    if cells is not None:
        count = len(cells)
    elif ptr is not None:
        count = len(ptr) - 1
    else:
        count = 1 if batch is None else torch.library.get_ctx().new_dynamic_size()
    return x.new_empty(count), *_like_inputs(x, q, cells)


@_gradients_of_graph.register_fake
@_tangents_of_graph.register_fake
def _like_gradients(x, q, cells, *_):
    return _like_inputs(x, q, cells)


def _save(ctx, inputs, output):
    *tensors, ctx.module = inputs[:6]
    ctx.save_for_backward(*tensors, *(output[1:] if len(output) == 4 else ()))


def _backward_of_energies(ctx, by_energies, *_):
    *inputs, by_x, by_q, by_cells = ctx.saved_tensors
    x, _, cells, batch, ptr = inputs
    found = _gradients_of_graph(*inputs, ctx.module, by_x, by_q, by_cells)
    if batch is not None:
        of_particles = by_energies[batch.to(x.device)]
    elif ptr is not None:
        of_particles = by_energies.repeat_interleave(ptr.diff().to(x.device), output_size=len(x))
    else:
        of_particles = by_energies.expand(len(x))
    of_cells = None if cells is None else by_energies.to(found[2])[:, None, None] * found[2]
    of_charges = of_particles.reshape(-1, *[1] * (found[1].dim() - 1)) * found[1]
    return of_particles[:, None] * found[0], of_charges, of_cells, None, None, None


def _backward_of_gradients(ctx, *direction):
    *inputs, cells, batch, ptr = ctx.saved_tensors
    found = _tangents_of_graph(*inputs, cells, batch, ptr, ctx.module, *direction)
    return *found[:2], None if cells is None else found[2], *[None] * 6


_energies_of_graph.register_autograd(_backward_of_energies, setup_context=_save)
_gradients_of_graph.register_autograd(_backward_of_gradients, setup_context=_save)
