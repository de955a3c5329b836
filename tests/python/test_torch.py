# SPDX-License-Identifier: LGPL-2.1-or-later
"""The function of PyTorch: energies of the solver, gradients by differences of energies."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import farfield  # noqa: E402
from farfield.torch import Coulomb, CoulombBatch  # noqa: E402

N = 24
EXCLUSIONS = [(0, 1), (2, 3), (4, 5)]


def coulomb(**options):
    return Coulomb(accuracy=1e-9, threads=1, device="cpu", **options)


@pytest.fixture
def inputs():
    """Positions, charges that do not add up to zero, and a cell turned in space."""
    random = np.random.default_rng(5)
    cell = 2 * np.eye(3) + random.uniform(-0.4, 0.4, (3, 3))
    x = random.random((N, 3)) @ cell
    q = random.uniform(-1, 1, N)
    return [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (x, q, cell)]


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
def test_gradients_are_slopes_of_the_energy(inputs, boundary):
    """Of charges that are 0, too, in excluded pairs and without. By the cell along one direction."""
    inputs[1].data[[0, 2, 7]] = 0
    if boundary == "open":
        inputs = inputs[:2]
    if boundary == "slab":
        inputs[2] = inputs[2].detach()[:2].clone().requires_grad_()
    function = coulomb(exclusions=EXCLUSIONS)
    tolerances = {"eps": 1e-5, "rtol": 1e-5, "atol": 1e-3, "nondet_tol": 1e-6}
    place = [tensor.detach() for tensor in inputs[2:]]
    assert torch.autograd.gradcheck(lambda *tensors: function(*tensors, *place), inputs[:2], **tolerances)
    coarser = Coulomb(accuracy=1e-7, threads=1, device="cpu", exclusions=EXCLUSIONS)
    assert torch.autograd.gradcheck(coarser, inputs, fast_mode=True, **tolerances)


def test_the_energy_is_that_of_the_solver(inputs):
    x, q, _ = (tensor.detach() for tensor in inputs)
    cell = torch.diag(torch.tensor([2.0, 2.2, 2.4]))
    solver = farfield.Solver(accuracy=1e-9, threads=1, device="cpu")
    solver.set_charges(q.numpy())
    expected = solver.evaluate(x.numpy(), np.diag(cell.numpy())).energy
    assert coulomb()(x, q, cell).item() == pytest.approx(expected, rel=1e-12)


def test_slabs_are_those_of_the_solver_however_they_are_turned(inputs):
    x, q, _ = (tensor.detach() for tensor in inputs)
    box = np.array([[2.0, 0, 0], [0.5, 1.9, 0], [0, 0, 1]])
    solver = farfield.Solver(accuracy=1e-9, threads=1, device="cpu", boundary="slab")
    solver.set_charges(q.numpy())
    expected = solver.evaluate(x.numpy(), box).energy
    turned, _ = np.linalg.qr(np.random.default_rng(8).random((3, 3)))
    for order in ([0, 1], [1, 0]):
        cell = torch.tensor((box @ turned)[order])
        found = coulomb()(x @ torch.tensor(turned), q, cell).item()
        assert found == pytest.approx(expected, rel=1e-8)


def test_single_precision_stays_so(inputs):
    x, q, cell = (tensor.detach().float().requires_grad_() for tensor in inputs)
    energy = Coulomb(accuracy=1e-4, threads=1, device="cpu")(x, q, cell)
    energy.backward()
    assert energy.dtype == torch.float32
    exact = coulomb()(*inputs)
    exact.backward()
    for single, double in zip((x, q, cell), inputs):
        assert single.grad.dtype == torch.float32
        error = (single.grad - double.grad).norm() / double.grad.norm()
        assert error < 1e-3


def test_charges_and_cell_may_change_between_calls(inputs):
    function = coulomb()
    x, q, cell = (tensor.detach() for tensor in inputs)
    first = function(x, q, cell)
    function(x[:10], q[:10])
    function(x, 2 * q, 1.01 * cell)
    assert function(x, q, cell).item() == pytest.approx(first.item(), rel=1e-8)


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
def test_second_derivatives_are_slopes_of_gradients(inputs, boundary):
    """To more digits than the accuracy has, and of charges that are 0, too."""
    x, q, cell = inputs
    q.data[[0, 2, 7]] = 0
    place = {"periodic": [cell.detach()], "slab": [cell.detach()[:2]], "open": []}[boundary]
    function = Coulomb(accuracy=1e-3, threads=1, device="cpu", exclusions=EXCLUSIONS)
    assert torch.autograd.gradgradcheck(
        lambda *tensors: function(*tensors, *place), (x, q), eps=1e-5, rtol=1e-5, atol=1e-2, nondet_tol=1e-6
    )


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
def test_force_losses_are_those_of_direct_sums(inputs, boundary):
    x, q, cell = inputs
    place = {"periodic": cell.detach(), "slab": cell.detach()[:2], "open": None}[boundary]
    aim = torch.tensor(np.random.default_rng(3).normal(size=(N, 3)))
    batch = CoulombBatch(accuracy=1e-10, threads=1)

    def slopes(energy):
        (gradient,) = torch.autograd.grad(energy, x, create_graph=True)
        return torch.autograd.grad(((gradient / 1000 - aim) ** 2).sum(), (x, q))

    found = slopes(coulomb()(x, q, place))
    expected = slopes(batch(x, q, None if place is None else place[None])[0])
    for own, other in zip(found, expected):
        assert (own - other).norm() < 1e-6 * other.norm()


@pytest.mark.parametrize("function", [coulomb, lambda: lambda *t: CoulombBatch(threads=1)(*t[:2], t[2][None])[0]])
def test_nothing_of_a_call_outlives_its_results(inputs, function):
    """Not even until cycles are collected: what a network has made would stay as long."""
    gc.collect()
    gc.disable()
    try:
        energy = function()(inputs[0], 2 * inputs[1], inputs[2].detach())
        gradient = torch.autograd.grad(energy, inputs[1], create_graph=True)
        del energy, gradient
        assert not [known for known in gc.get_objects() if isinstance(known, farfield.torch_systems.Systems)]
    finally:
        gc.enable()


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
def test_functional_derivatives_are_those_of_autograd(inputs, boundary):
    """Of torch.func, in both modes; its vmap takes elements in turn."""
    x, q, cell = inputs
    place = {"periodic": [cell.detach()], "slab": [cell.detach()[:2]], "open": []}[boundary]
    energy = lambda *tensors: coulomb()(*tensors, *place)  # noqa: E731
    direction = torch.cos(x.detach()), torch.cos(q.detach())
    gradients = torch.autograd.grad(energy(x, q), (x, q), create_graph=True)
    slope = sum((a * b).sum() for a, b in zip(gradients, direction))
    products = torch.autograd.grad(slope, (x, q))
    given = x.detach(), q.detach()
    gradient = torch.func.grad(energy, argnums=(0, 1))
    assert torch.func.jvp(energy, given, direction)[1].item() == pytest.approx(slope.item(), rel=1e-10)
    for parts in zip(torch.func.jvp(gradient, given, direction), (gradients, products)):
        assert all((a - b).norm() <= 1e-12 * b.norm() for a, b in zip(*parts))
    hessian = torch.func.hessian(energy)(*given)
    alone = torch.func.jvp(lambda x: gradient(x, given[1])[0], given[:1], direction[:1])[1]
    assert (torch.tensordot(hessian, direction[0]) - alone).norm() <= 1e-10 * alone.norm()
    with pytest.raises(NotImplementedError, match="Coulomb has first and second derivatives only"):
        torch.func.jvp(lambda *t: torch.func.jvp(gradient, t, direction)[1], given, direction)


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_compiled_functions_have_the_same_derivatives(inputs, boundary):
    """In one graph. Second ones without AOTAutograd, which has none."""
    inputs = inputs if boundary == "periodic" else inputs[:2]
    function = Coulomb(accuracy=1e-4, threads=1, device="cpu")

    def energy(x, *others):
        return function(2 * x, *others).sin()

    def second(energies):
        gradients = torch.autograd.grad(energies, inputs, create_graph=True)
        return torch.autograd.grad(sum((gradient**2).sum() for gradient in gradients), inputs)

    compiled = {backend: torch.compile(energy, backend=backend, fullgraph=True) for backend in ("eager", "aot_eager")}
    expected = torch.autograd.grad(energy(*inputs), inputs)
    for own in compiled.values():
        assert all(map(torch.equal, torch.autograd.grad(own(*inputs), inputs), expected))
    for own, other in zip(second(compiled["eager"](*inputs)), second(energy(*inputs))):
        assert (own - other).norm() <= 1e-12 * other.norm()
    with pytest.raises(ValueError, match="not finite"):
        compiled["eager"](inputs[0] * np.nan, *inputs[1:])


def test_compiled_functions_leave_transformed_calls_out(inputs):
    """Operators would have no derivatives for torch.func, and say so by zeros."""
    x, q, cell = (tensor.detach() for tensor in inputs)
    function = Coulomb(accuracy=1e-4, threads=1, device="cpu")
    slope = lambda x: torch.func.jvp(lambda x: function(x, q, cell), (x,), (torch.cos(x),))[1]  # noqa: E731
    assert torch.equal(torch.compile(slope, backend="eager")(x), slope(x))


def test_charges_of_a_network_are_trained_by_forces(inputs):
    """In single precision, as networks are."""
    x, _, cell = (tensor.detach().float() for tensor in inputs)
    x.requires_grad_()
    weights = (0.3 * torch.arange(N).sin()).requires_grad_()
    function = Coulomb(accuracy=1e-3, threads=1, device="cpu")
    (aim,) = torch.autograd.grad(function(x, torch.linspace(-1, 1, N), cell), x)
    losses = []
    adam = torch.optim.Adam([weights], lr=0.05)
    for _ in range(60):
        (gradient,) = torch.autograd.grad(function(x, weights - weights.mean(), cell), x, create_graph=True)
        loss = ((gradient - aim) ** 2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


@pytest.mark.parametrize("boundary", ["periodic", "slab"])
def test_second_derivatives_by_the_cell_are_slopes_of_gradients(inputs, boundary):
    """Along a direction of all inputs, and with a loss on gradients by the cell alone."""
    if boundary == "slab":
        inputs[2] = inputs[2].detach()[:2].clone().requires_grad_()
    function = coulomb()
    directions = [torch.cos(tensor.detach()) for tensor in inputs]

    def gradients(step):
        moved = [(tensor + step * along).detach().requires_grad_() for tensor, along in zip(inputs, directions)]
        return torch.autograd.grad(function(*moved), moved)

    step = 1e-4
    slopes = [(above - below) / (2 * step) for above, below in zip(gradients(step), gradients(-step))]
    found = torch.autograd.grad(function(*inputs), inputs, create_graph=True)
    along = sum((gradient * direction).sum() for gradient, direction in zip(found, directions))
    products = torch.autograd.grad(along, inputs, retain_graph=True)
    for own, slope in zip(products, slopes):
        assert (own - slope).norm() <= 1e-5 * slope.norm()
    # the Hessian is symmetric, within the errors of the forces
    by_cell = torch.autograd.grad((found[2] * directions[2]).sum(), inputs)
    of_cell = sum((product * direction).sum() for product, direction in zip(by_cell, directions))
    assert of_cell.item() == pytest.approx((products[2] * directions[2]).sum().item(), rel=1e-7)


def test_stresses_train_charges_in_single_precision(inputs):
    x, q, cell = (tensor.detach().float().requires_grad_() for tensor in inputs)

    def slopes(energy, *by):
        (stress,) = torch.autograd.grad(energy, cell, create_graph=True)
        return torch.autograd.grad((stress**2).sum(), by)

    single = slopes(Coulomb(accuracy=1e-4, threads=1, device="cpu")(x, q, cell), x, q, cell)
    exact = slopes(CoulombBatch(accuracy=1e-5, threads=1)(x, q, cell[None])[0], x, q, cell)
    for own, other in zip(single, exact):
        assert own.dtype == torch.float32
        assert (own - other).norm() <= 1e-3 * other.norm()


def test_second_derivatives_by_the_cell_are_refused_with_exclusions(inputs):
    x, q, cell = inputs
    function = coulomb(exclusions=EXCLUSIONS)
    for of in (x, cell):
        (gradient,) = torch.autograd.grad(function(x, q, cell), of, create_graph=True)
        with pytest.raises(NotImplementedError, match="With exclusions there are no second derivatives by the cell"):
            torch.autograd.grad(gradient.sum(), q)


def test_third_derivatives_are_refused(inputs):
    x, q, _ = inputs
    (force,) = torch.autograd.grad(coulomb()(x, q), x, create_graph=True)
    (slope,) = torch.autograd.grad(force.sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="Coulomb has first and second derivatives only"):
        torch.autograd.grad(slope.sum(), x)


def test_forces_of_a_sum_can_be_trained_if_charges_are_given(inputs):
    """The loss of a potential that is added to the Coulomb energy, by its own parameter."""
    x, q, _ = inputs
    parameter = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    energy = coulomb()(x, q.detach()) + parameter * (x**3).sum()
    (slope,) = torch.autograd.grad(energy, x, create_graph=True)
    (found,) = torch.autograd.grad((slope**2).sum(), parameter)
    expected = (2 * slope * 3 * x**2).sum()
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)


def test_a_position_that_is_not_finite_is_named(inputs):
    x, q, cell = (tensor.detach().clone() for tensor in inputs)
    x[3, 1] = float("nan")
    with pytest.raises(ValueError, match="particle 3"):
        coulomb()(x, q, cell)


def test_a_module_can_be_copied_and_saved(inputs):
    function = coulomb(exclusions=EXCLUSIONS)
    tensors = [tensor.detach() for tensor in inputs]
    expected = function(*tensors)
    assert copy.deepcopy(function)(*tensors) == expected
    assert pickle.loads(pickle.dumps(function))(*tensors) == expected


@pytest.mark.parametrize(
    "options", [{"dtype": "float64"}, {"boundary": "open"}, {"exclusions": [(0.7, 1.2)]}]
)
def test_options_that_can_not_be_meant_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Coulomb(**options)


@pytest.mark.parametrize(
    "case, words",
    [
        ((0, lambda t: t.reshape(-1)), ["positions", "[n, 3]", "[72]"]),
        ((1, lambda t: t[0]), ["charges", "[n]", "[]"]),
        ((1, lambda t: t * 1j), ["charges", "complex128"]),
        ((2, lambda t: t[0]), ["cell", "[3, 3]", "[2, 3]", "[3]"]),
        ((2, lambda t: t.numpy()), ["cell", "torch.Tensor"]),
        ((2, lambda t: t * torch.tensor([1, 1, 0])), ["no volume"]),
    ],
)
def test_tensors_of_another_kind_are_refused(inputs, case, words):
    tensors = [tensor.detach() for tensor in inputs]
    which, change = case
    tensors[which] = change(tensors[which])
    with pytest.raises((TypeError, ValueError)) as error:
        coulomb()(*tensors)
    for word in words:
        assert word in str(error.value)


def test_threads_that_share_a_module_take_turns(inputs):
    x, q, cell = (tensor.detach() for tensor in inputs)
    function = Coulomb(accuracy=1e-5, threads=1, device="cpu")
    expected = {n: function(x[:n], q[:n], cell).item() for n in (20, 24)}
    wrong = []

    def work(n):
        for _ in range(10):
            if function(x[:n], q[:n], cell).item() != expected[n]:
                wrong.append(n)

    workers = [threading.Thread(target=work, args=(n,)) for n in (20, 24, 20, 24)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_half_precision_is_refused(inputs):
    x, q, _ = (tensor.detach().bfloat16() for tensor in inputs)
    with pytest.raises(ValueError, match="float32 or float64"):
        coulomb()(x, q)
