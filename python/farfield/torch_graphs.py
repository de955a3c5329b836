# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls as operators of the graphs that torch.compile makes."""

import itertools
import weakref
from typing import Any

import torch

from .torch_systems import Energies, Gradients, Tangents


class InGraphs(torch.nn.Module):
    """A module whose calls are operators of the graphs of torch.compile, but for those within torch.func."""

    def __init__(self):
        super().__init__()
        self._number = _note(self)

    def __setstate__(self, state):
        super().__setstate__(state)
        self._number = _note(self)

    def _energies(self, positions, charges, cells, batch=None, ptr=None):
        """Energies, [systems]. cells: of one system or of all."""
        if torch.compiler.is_compiling() and not _is_transformed():
            return _energies_of_graph(positions, charges.to(positions.dtype), cells, batch, ptr, self._number)[0]
        return self._eager(positions, charges, cells, batch, ptr)

    @torch.compiler.disable  # type: ignore[misc]
    def _eager(self, positions, charges, cells, batch, ptr):
        given = self._given(positions, charges, cells, batch, ptr)
        return Energies.apply(*given, (charges.requires_grad, cells is not None and cells.requires_grad))

    def _given(self, positions, charges, cells, batch, ptr):
        """Positions, charges, cells of all systems in double precision, and the systems."""
        raise NotImplementedError


@torch.compiler.assume_constant_result  # type: ignore[misc]
def _is_transformed():
    """Whether torch.func transforms what is traced: operators of graphs have no derivatives for it."""
    return torch._C._functorch.peek_interpreter_stack() is not None


#: Modules by the numbers that graphs have for them.
_modules: Any = weakref.WeakValueDictionary()
_numbers = itertools.count()


def _note(module):
    number = next(_numbers)
    _modules[number] = module
    return number


def _operator(name, others, results):
    """An operator of what a module is given, and of others. It has one derivative, if any: energies have gradients,
    gradients have products with the Hessian.
    """
    given = "Tensor x, Tensor q, Tensor? cells, Tensor? batch, Tensor? ptr, int module"
    schema = f"({given}{others}) -> ({', '.join(['Tensor'] * results)})"
    return torch.library.custom_op(f"farfield::{name}", mutates_args=(), schema=schema)


@_operator("energies", "", 4)
def _energies_of_graph(x, q, cells, batch, ptr, module):
    """Energies, and their gradients by positions, charges and cells: of no cells there are none."""
    given = _modules[module]._given(x, q, cells, batch, ptr)
    wanted = True, cells is not None
    energies = Energies.forward(*given, wanted)
    return energies, *_as_inputs(Gradients.forward(*given, wanted), x, q, cells)


@_operator("gradients", ", Tensor by_x, Tensor by_q, Tensor by_cells", 3)
def _gradients_of_graph(x, q, cells, batch, ptr, module, *gradients):
    """The gradients that farfield::energies has found, with derivatives."""
    return tuple(gradient.clone() for gradient in gradients)


@_operator("tangents", ", Tensor dx, Tensor dq, Tensor dcells", 3)
def _tangents_of_graph(x, q, cells, batch, ptr, module, dx, dq, dcells):
    """Products of the Hessian with a direction."""
    *inputs, systems = _modules[module]._given(x, q, cells, batch, ptr)
    changes = None if cells is None or not dcells.any() else dcells.to(inputs[2]).reshape(inputs[2].shape)
    found = Tangents.forward(*inputs, dx, dq, changes, systems, (True, cells is not None))
    return _as_inputs(found, x, q, cells)


def _as_inputs(found, x, q, cells):
    inputs = (x, q) if cells is None else (x, q, cells)
    own = [part.to(like).reshape(like.shape).contiguous() for part, like in zip(found, inputs)]
    return *own, *[x.new_empty(0)] * (3 - len(own))


def _like_inputs(x, q, cells):
    return torch.empty_like(x), torch.empty_like(q), x.new_empty(0) if cells is None else torch.empty_like(cells)


@_energies_of_graph.register_fake
def _like_energies(x, q, cells, batch, ptr, module):
    if cells is not None:
        count = len(cells) if cells.dim() == 3 else 1
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
    of_cells = None
    if cells is not None:
        of_cells = (by_energies.to(cells)[:, None, None] * found[2].reshape(-1, *cells.shape[-2:])).reshape(cells.shape)
    of_charges = of_particles.to(found[1]).reshape(-1, *[1] * (found[1].dim() - 1)) * found[1]
    return of_particles[:, None] * found[0], of_charges, of_cells, None, None, None


def _backward_of_gradients(ctx, *direction):
    *inputs, cells, batch, ptr = ctx.saved_tensors
    found = _tangents_of_graph(*inputs, cells, batch, ptr, ctx.module, *direction)
    return *found[:2], None if cells is None else found[2], *[None] * 6


_energies_of_graph.register_autograd(_backward_of_energies, setup_context=_save)
_gradients_of_graph.register_autograd(_backward_of_gradients, setup_context=_save)
