# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Coulomb energies in PyTorch, with gradients for positions, charges and cell."""

from typing import Any, Optional

import numpy as np
import torch
from numpy.typing import ArrayLike

from . import arguments
from .cells import lower_triangular
from .solver import Solver


class Coulomb(torch.nn.Module):
    """The Coulomb energy of point charges, kJ/mol, as a function that can be differentiated once.

    Positions and charges are float32, whose accuracy ends at 2e-6, or float64. Positions on the GPU
    of the solver stay there, charges and the cell are copied to the host. Energy and gradients are
    within the error that is asked for of each other. torch.func does not know it; use torch.autograd.

    Args:
        exclusions: pairs of particles whose minimum-image interaction is left out, [m, 2].
        options: those of farfield.Solver, but for dtype and boundary.
    """

    def __init__(self, exclusions: ArrayLike = (), **options):
        super().__init__()
        if given := {"dtype", "boundary"} & options.keys():
            raise ValueError(f"{given.pop()} follows from the tensors, leave it out.")
        self._options = options
        self._exclusions = arguments.pairs("exclusions", exclusions)
        self._solvers: dict[Any, Any] = {}

    def __getstate__(self):
        # Solvers are made anew
        return {**super().__getstate__(), "_solvers": {}}

    def forward(
        self,
        positions: torch.Tensor,
        charges: torch.Tensor,
        cell: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """Energy, a scalar of the type of the positions.

        Args:
            positions: nm, [n, 3], any periodic image.
            charges: e, [n].
            cell: vectors of the box as rows, nm, [3, 3], of any orientation; two of them, [2, 3]: a slab, with images
                along both and none across; None: no images.

        Raises:
            TypeError, ValueError: as Solver.evaluate().
        """
        given: list[Any] = [("positions", positions, ("n", 3)), ("charges", charges, ("n",))]
        given += [("cell", cell, (3, 3), (2, 3))]
        for name, tensor, *shapes in given[: 2 if cell is None else 3]:
            if not isinstance(tensor, torch.Tensor):
                raise TypeError(f"{name} must be a torch.Tensor, but is {tensor!r}.")
            arguments.check_shape(name, tensor, *shapes, what="a tensor")
        dtypes = {torch.float32: np.float32, torch.float64: np.float64}
        if positions.dtype not in dtypes:
            raise ValueError(f"positions are {positions.dtype}, but must be float32 or float64.")
        dtype = dtypes[positions.dtype]
        return _Energy.apply(positions, charges, cell, self._solver(dtype, cell), self._exclusions)

    def _solver(self, dtype, cell):
        key = dtype, "open" if cell is None else "periodic" if len(cell) == 3 else "slab"
        if key not in self._solvers:
            self._solvers[key] = Solver(dtype=dtype, boundary=key[1], **self._options)
        return self._solvers[key]


class _Energy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, positions, charges, cell, solver, exclusions):
        needs_charges, needs_cell = ctx.needs_input_grad[1:3]
        x = positions.detach()
        box, turned = (None, np.eye(3)) if cell is None else lower_triangular(_on_host(cell))
        is_there = x.is_cuda and x.device.index == solver.setup["device_id"]
        place = x.device if is_there else "cpu"
        turn = torch.as_tensor(turned, device=place)
        moved = (x.to(turn) @ turn.T).to(x.dtype)
        wanted = {"virial": needs_cell, "potentials": needs_charges}
        with solver.alone():
            solver.set_charges(charges.detach().cpu().numpy())
            solver.set_exclusions(exclusions)
            result = solver.evaluate(moved if moved.is_cuda else moved.numpy(), box, **wanted)
        forces = torch.as_tensor(result.forces).to(turn) @ turn
        gradients = [-forces, result.potentials, None]
        if needs_cell:
            # Of the energy under a strain of positions and cell, 2 virial, the cell's own part
            strain = turned.T @ (2 * result.virial) @ turned
            own = strain + _on_host(x).T @ _on_host(forces)
            gradients[2] = np.linalg.pinv(_on_host(cell).T) @ own
        inputs = positions, charges, cell
        ctx.save_for_backward(*inputs)
        ctx.gradients = [
            None if gradient is None else torch.as_tensor(gradient).to(like)
            for gradient, like in zip(gradients, inputs)
        ]
        return positions.new_tensor(result.energy)

    @staticmethod
    def backward(ctx, grad):
        parts = [
            None if gradient is None else grad * _Gradient.apply(gradient, *ctx.saved_tensors)
            for gradient in ctx.gradients
        ]
        return (*parts, None, None)


class _Gradient(torch.autograd.Function):
    """A gradient of the energy: it depends on all inputs, but how is not known."""

    @staticmethod
    def forward(ctx, gradient, *inputs):
        return gradient.clone()

    @staticmethod
    def backward(ctx, grad):
        raise NotImplementedError(
            "farfield.torch.Coulomb has first derivatives only. Where gradients of forces are wanted "
            "that do not depend on its charges, leave its positions out: "
            "torch.autograd.grad(loss, parameters)."
        )


def _on_host(tensor):
    return tensor.detach().cpu().numpy().astype(float)
