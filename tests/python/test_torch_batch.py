# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches in PyTorch: derivatives by differences, and a plain Ewald sum that PyTorch differentiates."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import farfield  # noqa: E402
from farfield.torch import CoulombBatch  # noqa: E402

from .batch_systems import INDEX, SIZES, latent_ewald_summation, some_systems  # noqa: E402

BATCH = torch.tensor(INDEX)


def coulomb(accuracy=1e-10, **options):
    return CoulombBatch(accuracy=accuracy, threads=1, **options)


@pytest.fixture
def inputs():
    return [torch.tensor(array, requires_grad=True) for array in some_systems()]


def plain_ewald(x, q, cell, splitting=5.5, images=3, waves=9):
    """A sum over images and waves within cubes of them, of kJ/mol; 1e-10 of forces in the cells above."""
    shifts = torch.cartesian_prod(*[torch.arange(-images, images + 1.0, dtype=x.dtype)] * 3)
    wrapped = x - torch.floor(x.detach() @ torch.linalg.inv(cell.detach())) @ cell
    d = wrapped[:, None, None] - wrapped[None, :, None] + shifts @ cell
    here = (shifts == 0).all(1) & torch.eye(len(x), dtype=torch.bool)[:, :, None]
    r = torch.where(here[..., None], torch.ones_like(d), d).norm(dim=-1)
    pairs = torch.where(here, torch.zeros_like(r), torch.special.erfc(splitting * r) / r).sum(-1)
    energy = 0.5 * q @ pairs @ q - splitting / np.sqrt(np.pi) * (q**2).sum()
    numbers = torch.cartesian_prod(*[torch.arange(-waves, waves + 1.0, dtype=x.dtype)] * 3)
    k = 2 * np.pi * numbers[(numbers != 0).any(1)] @ torch.linalg.inv(cell).mT
    square, phases = (k**2).sum(1), x @ k.mT
    factor = torch.exp(-square / (4 * splitting**2)) / square
    volume = torch.linalg.det(cell).abs()
    structure = (q @ torch.cos(phases)) ** 2 + (q @ torch.sin(phases)) ** 2
    energy = energy + 2 * np.pi / volume * (factor * structure).sum()
    return 138.935458 * (energy - np.pi / (2 * splitting**2 * volume) * q.sum() ** 2)


def test_energies_are_those_of_a_batch(inputs):
    x, q, cells = inputs
    x_and_q = (tensor.detach().numpy() for tensor in (x, q))
    result = farfield.Batch(1e-10, threads=1, device="cpu")(*x_and_q, index=BATCH, boxes=cells.detach())
    assert np.array_equal(coulomb()(x, q, cells, batch=BATCH).detach(), result.energies)
    ptr = torch.tensor([0, *np.cumsum(SIZES)])
    assert np.array_equal(coulomb()(x, q, cells, ptr=ptr).detach(), result.energies)
    alone = coulomb()(x[:5], q[:5], cells[:1])
    assert np.array_equal(alone.detach(), result.energies[:1])


@pytest.mark.parametrize(
    "boundary, options", [("periodic", {}), ("slab", {}), ("open", {}), ("periodic", {"smearing": 0.08})]
)
@pytest.mark.parametrize("channels", [1, 2])
def test_derivatives_are_slopes(inputs, boundary, options, channels):
    """First and second ones, by positions, charges and cells."""
    x, q, cells = inputs
    if channels == 2:
        q = torch.stack((q, torch.cos(5 * q)), 1).detach().requires_grad_()
    function = coulomb(channels=channels, **options)
    vectors = cells.detach()[:, : 2 if boundary == "slab" else 3].requires_grad_()
    tensors = (x, q) if boundary == "open" else (x, q, vectors)
    tolerances = {"eps": 1e-5, "atol": 1e-3, "rtol": 1e-5}
    assert torch.autograd.gradcheck(lambda *t: function(*t, batch=BATCH), tensors, **tolerances)
    assert torch.autograd.gradgradcheck(lambda *t: function(*t, batch=BATCH), tensors, **tolerances)


def loss(energies, x, q, cells):
    """Of forces and stresses, and of charges that depend on a parameter."""
    forces, stress = torch.autograd.grad(energies.sum(), (x, cells), create_graph=True)
    return (forces**2).sum() / 1e6 + (stress**2).sum() / 1e6 + energies.sum() / 1e3


@pytest.mark.parametrize("accuracy, bound", [(1e-3, 1e-2), (1e-9, 1e-7)])
def test_a_loss_on_forces_and_stresses_has_the_gradients_of_a_plain_sum(inputs, accuracy, bound):
    x, q, cells = inputs
    parameter = torch.tensor([0.7, 0.2], dtype=torch.float64, requires_grad=True)
    gradients = []
    for kind in ("batch", "plain"):
        charges = parameter[0] * q + parameter[1] * (x**2).sum(1)
        if kind == "batch":
            energies = coulomb(accuracy)(x, charges, cells, batch=BATCH)
        else:
            owned = [torch.eq(BATCH, s) for s in range(4)]
            energies = torch.stack([plain_ewald(x[own], charges[own], cell) for own, cell in zip(owned, cells)])
        gradients.append(torch.autograd.grad(loss(energies, x, q, cells), (parameter, x, q, cells)))
    for found, expected in zip(*gradients):
        assert (found - expected).norm() <= bound * expected.norm()


def test_charges_that_are_all_zero_have_second_derivatives(inputs):
    x, q, cells = inputs
    zero = torch.zeros_like(q, requires_grad=True)

    def potentials(q):
        return torch.autograd.grad(coulomb()(x, q, cells, batch=BATCH).sum(), q, create_graph=True)[0]

    (found,) = torch.autograd.grad(potentials(zero), zero, q.detach())
    assert found.numpy() == pytest.approx(potentials(q).detach().numpy(), rel=1e-6, abs=1e-4)


def test_single_precision_stays_so(inputs):
    x, q, cells = (tensor.detach().float().requires_grad_() for tensor in inputs)
    parts = []
    for tensors, accuracy in (((x, q, cells), 1e-4), (inputs, 1e-9)):
        energies = coulomb(accuracy)(*tensors, batch=BATCH)
        assert energies.dtype == tensors[0].dtype
        parts.append(torch.autograd.grad(loss(energies, *tensors), tensors))
    for single, double in zip(*parts):
        assert single.dtype == torch.float32
        assert (single - double).norm() / double.norm() < 1e-3


@pytest.mark.parametrize("name, own", [("without_self", False), ("with_self", True)])
def test_losses_fall_as_with_latent_ewald_summation(name, own):
    """Ten steps of gradient descent, with energies and forces in the loss, as with its own code."""
    data = latent_ewald_summation()
    options = {"smearing": 1.0, "wave_cutoff": 2 * np.pi / 2.0, "self_energy": own, "channels": 2}
    function = coulomb(coulomb_constant=90.4756 / (2 * np.pi), **options)  # Angstrom, eV
    x, features, cells, goal = (
        torch.tensor(data[key], dtype=torch.float64) for key in ("x", "features", "cells", "weights")
    )
    x.requires_grad_()
    batch = torch.arange(3).repeat_interleave(torch.tensor(data["sizes"]))

    def energies_and_forces(weights):
        energies = function(x, features @ weights, cells, batch=batch)
        return energies, -torch.autograd.grad(energies.sum(), x, create_graph=True)[0]

    reference = [part.detach() for part in energies_and_forces(goal)]
    weights = torch.tensor([[0.1, -0.05]] * 3, dtype=torch.float64, requires_grad=True)
    for expected in data[name]["losses"]:
        loss = sum((a - b).square().mean() for a, b in zip(energies_and_forces(weights), reference))
        assert loss.item() == pytest.approx(expected, rel=1e-9)
        (slope,) = torch.autograd.grad(loss, weights)
        weights = (weights - 4e-4 * slope).detach().requires_grad_()


def test_functional_derivatives_are_those_of_autograd(inputs):
    """Of torch.func, in both modes, by positions, charges and cells."""
    direction = [torch.cos(tensor.detach()) for tensor in inputs]

    def energy(*tensors):
        return coulomb()(*tensors, batch=BATCH).sum()

    gradients = torch.autograd.grad(energy(*inputs), inputs, create_graph=True)
    slope = sum((a * b).sum() for a, b in zip(gradients, direction))
    products = torch.autograd.grad(slope, inputs)
    given = tuple(tensor.detach() for tensor in inputs)
    gradient = torch.func.grad(energy, argnums=(0, 1, 2))
    found, change = torch.func.jvp(energy, given, tuple(direction))
    assert change.item() == pytest.approx(slope.item(), rel=1e-10)
    found, changes = torch.func.jvp(gradient, given, tuple(direction))
    for parts in ((found, gradients), (changes, products)):
        assert all((a - b).norm() <= 1e-12 * b.norm() for a, b in zip(*parts))
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.func.jvp(lambda *t: torch.func.jvp(gradient, t, tuple(direction))[1], given, tuple(direction))


def test_functions_of_many_tensors_take_them_in_turn(inputs):
    x, q, cells = (tensor.detach() for tensor in inputs)

    def energies(x):
        return coulomb()(x, q, cells, batch=BATCH)

    many = torch.stack((x, x + 0.01 * torch.sin(7 * x)))
    assert torch.equal(torch.func.vmap(energies)(many), torch.stack([energies(x) for x in many]))
    hessian = torch.func.hessian(lambda x: energies(x).sum())(x)
    product = torch.func.jvp(torch.func.grad(lambda x: energies(x).sum()), (x,), (torch.cos(x),))[1]
    assert (torch.tensordot(hessian, torch.cos(x)) - product).norm() <= 1e-10 * product.norm()


@pytest.mark.parametrize("has_cells", [True, False])
@pytest.mark.parametrize("name", ["batch", "ptr"])
def test_compiled_functions_have_the_same_derivatives(inputs, name, has_cells):
    """In one graph. Second ones without AOTAutograd, which has none."""
    inputs = inputs if has_cells else inputs[:2]
    starts = torch.searchsorted(BATCH, torch.arange(len(inputs[-1]) + 1)) if has_cells else None
    given = {"batch": BATCH} if name == "batch" or starts is None else {"ptr": starts}
    function = coulomb()

    def energy(x, *others):
        return function(2 * x, *others, **given).sin().sum()

    def second(energies):
        gradients = torch.autograd.grad(energies, inputs, create_graph=True)
        return torch.autograd.grad(sum((gradient**2).sum() for gradient in gradients), inputs)

    compiled = {backend: torch.compile(energy, backend=backend, fullgraph=True) for backend in ("eager", "aot_eager")}
    expected = torch.autograd.grad(energy(*inputs), inputs)
    for own in compiled.values():
        assert all(map(torch.equal, torch.autograd.grad(own(*inputs), inputs), expected))
    for own, other in zip(second(compiled["eager"](*inputs)), second(energy(*inputs))):
        assert (own - other).norm() <= 1e-12 * other.norm()


def test_third_derivatives_are_refused(inputs):
    x, q, cells = inputs
    (force,) = torch.autograd.grad(coulomb()(x, q, cells, batch=BATCH).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((force**2).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(second.sum(), q)


def test_a_module_can_be_copied_and_saved(inputs):
    function = coulomb(smearing=0.1, self_energy=True)
    tensors = [tensor.detach() for tensor in inputs]
    expected = function(*tensors, batch=BATCH)
    assert torch.equal(copy.deepcopy(function)(*tensors, batch=BATCH), expected)
    assert torch.equal(pickle.loads(pickle.dumps(function))(*tensors, batch=BATCH), expected)


@pytest.mark.parametrize("name", ["dtype", "boundary", "device_id"])
def test_options_that_follow_from_tensors_are_refused(name):
    with pytest.raises(ValueError, match=name):
        CoulombBatch(**{name: "float64"})


@pytest.mark.parametrize(
    "change, words",
    [
        ({"positions": lambda t: t.reshape(-1)}, ["positions", "[n, 3]", "[39]"]),
        ({"positions": lambda t: t.bfloat16()}, ["float32 or float64"]),
        ({"positions": lambda t: t.to("meta")}, ["positions must be on the CPU", "meta"]),
        ({"positions": lambda t: t * float("nan")}, ["System 0"]),
        ({"charges": lambda t: t[1:]}, ["charges"]),
        ({"cells": lambda t: t[0]}, ["cells", "[systems, 3, 3]"]),
        ({"cells": lambda t: t[:3]}, ["index"]),
        ({"cells": lambda t: t.numpy()}, ["cells", "torch.Tensor"]),
        ({"batch": lambda t: t.flip(0)}, ["index must ascend"]),
        ({"batch": lambda t: None}, ["1 systems, but 4 boxes"]),
    ],
)
def test_tensors_of_another_kind_are_refused(inputs, change, words):
    given = dict(zip(("positions", "charges", "cells"), (tensor.detach() for tensor in inputs)), batch=BATCH)
    given.update({name: call(given[name]) for name, call in change.items()})
    with pytest.raises((TypeError, ValueError)) as error:
        coulomb()(**given)
    for word in words:
        assert word in str(error.value)


def test_the_example_of_the_documentation_runs(capsys):
    page = Path(__file__).parents[2] / "docs/batches.md"
    program = page.read_text().split("```python\n")[2].split("```")[0]
    exec(program, {})
    assert capsys.readouterr().out.startswith("tensor(")


def test_first_particles_follow_from_an_index_without_a_wait():
    from farfield.torch_systems import Starts

    index, place = torch.tensor([0, 0, 1, 1, 1, 3]), torch.device("cpu")
    starts = [0, 2, 5, 5, 6]
    for own in (Starts(6, index, None, 4), Starts(6, None, torch.tensor(starts), 4)):
        assert own.on_gpu(place).tolist() == starts and list(own.on_host()) == starts
    assert isinstance(Starts(6, index).on_gpu(place), np.ndarray)  # the number of systems has to be read
    assert Starts(6, index.flip(0), None, 4).on_gpu(place).tolist() == [-1] * 5
    with pytest.raises(ValueError, match="Either offsets or index"):
        Starts(6, index, torch.tensor(starts), 4).on_gpu(place)
