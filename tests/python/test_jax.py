# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of JAX: energies of plain sums, and derivatives by differences."""

import copy
import gc
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from farfield.jax import Coulomb, CoulombBatch  # noqa: E402

from . import ewald  # noqa: E402
from .batch_systems import INDEX, SIZES, some_systems  # noqa: E402

# along random directions, of which terms may cancel
SLOPES = {"modes": ("fwd", "rev"), "eps": 2e-6, "atol": 1e-3, "rtol": 2e-5}


@pytest.fixture(autouse=True)
def double():
    """JAX with float64 in these tests alone."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def inputs():
    return some_systems()


def of_batch(accuracy=1e-10, **options):
    function = CoulombBatch(accuracy=accuracy, threads=1, device="cpu", **options)
    return lambda *arrays: function(*arrays, batch=INDEX)


def of_one(exclusions=()):
    return Coulomb(exclusions, accuracy=1e-8, threads=1, device="cpu")


def one(inputs, kind):
    """A system of 24 charges, two of them 0."""
    random = np.random.default_rng(6)
    cell = 2 * np.eye(3) + random.uniform(-0.4, 0.4, (3, 3))
    q = random.uniform(-1, 1, 24)
    q[[0, 7]] = 0
    return random.random((24, 3)) @ cell, q, *{"periodic": [cell], "slab": [cell[:2]], "open": []}[kind]


def test_energies_are_those_of_plain_sums(inputs):
    x, q, cells = inputs
    starts = np.cumsum(SIZES)[:-1]
    expected = [ewald.energy(*system) for system in zip(np.split(q, starts), np.split(x, starts), cells)]
    assert np.asarray(of_batch()(*inputs)) == pytest.approx(expected, rel=1e-8, abs=1e-6)
    x, q, cell = one(inputs, "periodic")
    assert float(of_one([(1, 2)])(x, q, cell)) == pytest.approx(ewald.energy(q, x, cell, [(1, 2)]), rel=1e-7)


@pytest.mark.parametrize(
    "boundary, options", [("periodic", {}), ("slab", {}), ("open", {}), ("periodic", {"smearing": 0.08})]
)
@pytest.mark.parametrize("channels", [1, 2])
def test_derivatives_of_batches_are_slopes(inputs, boundary, options, channels):
    """First and second ones, by positions, charges and cells, compiled."""
    x, q, cells = inputs
    q = q if channels == 1 else np.stack((q, np.cos(5 * q)), 1)
    vectors = cells[:, : 2 if boundary == "slab" else 3]
    arrays = (x, q) if boundary == "open" else (x, q, vectors)
    check_grads(jax.jit(of_batch(channels=channels, **options)), arrays, order=2, **SLOPES)


@pytest.mark.parametrize("kind", ["periodic", "slab", "open"])
def test_derivatives_of_one_system_are_slopes(inputs, kind):
    check_grads(jax.jit(of_one([(0, 1), (2, 3)])), one(inputs, kind), order=1, **SLOPES)


@pytest.mark.parametrize("kind", ["periodic", "slab", "open"])
def test_second_derivatives_of_one_system_are_slopes_of_gradients(inputs, kind):
    """By positions and charges, to more digits than the accuracy has."""
    x, q, *cell = one(inputs, kind)
    coulomb = Coulomb([(0, 1), (2, 3)], accuracy=1e-3, threads=1, device="cpu")
    gradient = jax.jit(jax.grad(lambda *a: coulomb(*a, *cell), (0, 1)))
    check_grads(gradient, (x, q), order=1, modes=("fwd", "rev"), eps=1e-5, atol=1e-2, rtol=1e-5)


def test_force_losses_of_one_system_are_those_of_a_batch(inputs):
    x, q, cell = one(inputs, "periodic")
    batch = CoulombBatch(accuracy=1e-10, threads=1, device="cpu")

    def loss(function):
        return lambda x, q: (jax.grad(function)(x, q) ** 2).sum()

    energies = of_one(), lambda x, q, cell: batch(x, q, cell[None])[0]
    found, expected = (jax.grad(loss(lambda x, q, f=f: f(x, q, cell)), (0, 1))(x, q) for f in energies)
    for a, b in zip(found, expected):
        assert jnp.linalg.norm(a - b) <= 1e-6 * jnp.linalg.norm(b)


@pytest.mark.parametrize("kind", ["one", "batch"])
@pytest.mark.parametrize("hessian", [jax.hessian, lambda f: jax.jacrev(jax.jacfwd(f))])
def test_the_hessian_is_symmetric_and_that_of_differences(inputs, hessian, kind):
    x, q, *cells = one(inputs, "periodic") if kind == "one" else inputs
    function = of_one() if kind == "one" else of_batch()

    def energy(x):
        return function(x, q, *cells).sum()

    found = hessian(energy)(x).reshape(x.size, x.size)
    assert abs(found - found.T).max() <= 1e-12 * abs(found).max()
    step = 1e-5 * np.eye(x.size)[0].reshape(x.shape)
    column = (jax.grad(energy)(x + step) - jax.grad(energy)(x - step)).reshape(-1) / 2e-5
    assert abs(found[0] - column).max() <= 1e-7 * abs(found).max()


def test_products_are_of_the_sums_of_the_energies(inputs):
    """Sums that are cut elsewhere have other derivatives, by 1e-2 here. Cut-offs do not follow positions."""
    x, q, cells = inputs
    gradient = jax.grad(lambda *arrays: of_batch(1e-2)(*arrays).sum(), (0, 1, 2))
    change = np.cos(7 * x)
    found = jax.jvp(lambda x: gradient(x, q, cells), (x,), (change,))[1]
    after, before = (gradient(x + t * change, q, cells) for t in (1e-6, -1e-6))
    for product, u, v in zip(found, after, before):
        assert np.linalg.norm(product - (u - v) / 2e-6) <= 1e-6 * np.linalg.norm(product)


@pytest.mark.parametrize("of", range(3))
@pytest.mark.parametrize("along", range(3))
def test_products_of_one_input_are_those_of_all(inputs, of, along):
    """Derivatives of the gradient by one input along another one, forwards and backwards."""

    def energy(*arrays):
        return of_batch(1e-6)(*arrays).sum()

    def part(array):
        return jax.grad(energy, of)(*inputs[:along], array, *inputs[along + 1 :])

    direction = [np.zeros_like(a) for a in inputs]
    direction[along] = np.cos(7 * inputs[along])
    expected = jax.jvp(jax.grad(energy, (0, 1, 2)), inputs, tuple(direction))[1][of]
    found = jax.jvp(part, (inputs[along],), (direction[along],))[1]
    assert abs(found - expected).max() <= 1e-12 * abs(expected).max()
    back = jax.vjp(part, inputs[along])[1](np.sin(3 * inputs[of]))[0]
    forwards, backwards = (found * np.sin(3 * inputs[of])).sum(), (back * direction[along]).sum()
    assert float(backwards) == pytest.approx(float(forwards), rel=1e-9)


def test_several_inputs_at_once(inputs):
    x, q, cells = inputs
    factors = jnp.array([1.0, -0.5])
    forces = jax.vmap(lambda factor: jax.grad(lambda x: of_batch()(x, factor * q, cells).sum())(x))(factors)
    assert abs(forces[1] - 0.25 * forces[0]).max() <= 1e-9 * abs(forces).max()


def test_a_loss_on_forces_trains_charges(inputs):
    x, q, cells = inputs

    def loss(scale):
        return (jax.grad(lambda x: of_batch()(x, scale * q, cells).sum())(x) ** 2).sum()

    # forces are products of two charges
    assert float(jax.grad(loss)(0.7)) == pytest.approx(float(4 * loss(0.7) / 0.7), rel=1e-9)


def test_single_precision_stays_so(inputs):
    jax.config.update("jax_enable_x64", False)
    parts = []
    for dtype, accuracy in ((np.float32, 1e-4), (np.float64, 1e-9)):
        jax.config.update("jax_enable_x64", dtype == np.float64)
        function = of_batch(accuracy)
        arrays = [a.astype(dtype) for a in inputs]
        gradient, product = jax.jvp(
            jax.grad(lambda *a, f=function: f(*a).sum()), arrays, [np.cos(a, dtype=dtype) for a in arrays]
        )
        assert function(*arrays).dtype == gradient.dtype == product.dtype == dtype
        parts.append(np.asarray(product, float))
    assert np.linalg.norm(parts[0] - parts[1]) <= 1e-3 * np.linalg.norm(parts[1])


def test_further_derivatives_are_refused(inputs):
    x, q, cells = inputs
    gradient = jax.grad(lambda x: of_batch()(x, q, cells).sum())
    with pytest.raises(NotImplementedError, match="first and second derivatives"):
        jax.grad(lambda x: jax.jvp(gradient, (x,), (x,))[1].sum())(x)
    x, q, cell = one(inputs, "periodic")
    gradient = jax.grad(lambda x: of_one()(x, q, cell))
    with pytest.raises(NotImplementedError, match=r"jax\.Coulomb has first and second derivatives"):
        jax.grad(lambda x: jax.jvp(gradient, (x,), (x,))[1].sum())(x)
    excluding = of_one(exclusions=[(0, 1)])
    with pytest.raises(NotImplementedError, match="With exclusions there are no second derivatives by the cell"):
        jax.grad(lambda cell: (jax.grad(excluding)(x, q, cell) ** 2).sum())(cell)
    with pytest.raises(NotImplementedError, match="With exclusions there are no second derivatives by the cell"):
        jax.grad(lambda x: jax.grad(excluding, 2)(x, q, cell).sum())(x)


@pytest.mark.parametrize("boundary", ["periodic", "slab"])
def test_one_system_has_the_second_derivatives_by_the_cell_of_sums(inputs, boundary):
    x, q, cell = one(inputs, boundary)
    direct = CoulombBatch(accuracy=1e-10, threads=1, device="cpu")
    parts = [], []
    for of, function in zip(parts, (of_one(), lambda x, q, cell: direct(x, q, cell[None])[0])):
        of += jax.grad(lambda *a, f=function: (jax.grad(f, 2)(*a) ** 2).sum(), (0, 1, 2))(x, q, cell)
        of += jax.grad(lambda *a, f=function: (jax.grad(f, 0)(*a) ** 2).sum(), (1, 2))(x, q, cell)
        given = x, q, cell
        of += jax.jvp(jax.grad(function, (0, 2)), given, tuple(map(np.cos, given)))[1]
    for own, other in zip(*parts):
        assert np.linalg.norm(own - other) <= 1e-6 * np.linalg.norm(other)


def test_functions_can_be_copied_and_saved(inputs):
    for function, arrays in ((Coulomb(accuracy=1e-6), one(inputs, "slab")), (CoulombBatch(), one(inputs, "open"))):
        expected = function(*arrays)
        for other in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
            made = "_systems" if isinstance(function, Coulomb) else "_batches"
            assert getattr(function, made) and not getattr(other, made)
            assert jnp.array_equal(other(*arrays), expected)


def test_one_system_in_single_precision_in_a_loop(inputs):
    """Left-handed cells, maps, scans and rematerialisation; positions alone vary."""
    x, q, cell = one(inputs, "periodic")
    exact = jax.grad(of_one())(x, q, cell[[1, 0, 2]])
    x, q, cell = (a.astype(np.float32) for a in (x, q, cell))
    coulomb = Coulomb(accuracy=1e-4, threads=1, device="cpu")
    gradient = jax.jit(jax.grad(jax.checkpoint(coulomb)))
    scale = abs(exact).max()
    assert gradient(x, q, cell[[1, 0, 2]]).dtype == np.float32
    assert abs(gradient(x, q, cell[[1, 0, 2]]) - exact).max() <= 1e-3 * scale
    both = jax.vmap(lambda q: gradient(x, q, cell))(jnp.stack((q, 2 * q)))
    assert abs(both[1] - 4 * both[0]).max() <= 1e-3 * abs(both).max()
    steps = jax.lax.scan(lambda x, _: (x, gradient(x, q, cell)), x, length=2)[1]
    assert jnp.array_equal(steps[0], steps[1])


def test_equal_calls_are_compiled_once(inputs):
    """Also outside of jit, where JAX knows a function by what is equal to it."""
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    )
    coulomb, arrays = of_one(), one(inputs, "periodic")
    energy = of_batch()
    calls = [
        lambda: coulomb(*arrays),
        lambda: jax.grad(coulomb)(*arrays),
        lambda: jax.jvp(jax.grad(lambda *a: energy(*a).sum()), inputs, inputs)[1],
    ]
    for _ in range(2):
        for call in calls:
            jax.block_until_ready(call())
    compiled.clear()
    for call in calls:
        jax.block_until_ready(call())
    assert not compiled


def test_compiled_programs_keep_what_they_call(inputs):
    arrays = one(inputs, "periodic")
    expected = of_one()(*arrays)
    program = jax.jit(of_one()).lower(*arrays).compile()
    jax.clear_caches()
    gc.collect()
    assert program(*arrays) == expected


def test_double_precision_may_be_that_of_a_part(inputs):
    arrays = one(inputs, "periodic")
    expected = jax.grad(of_one())(*arrays)
    jax.config.update("jax_enable_x64", False)
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        found = jax.grad(of_one())(*arrays)
    assert found.dtype == np.float64
    assert np.abs(np.subtract(found, expected)).max() <= 1e-12 * np.abs(expected).max()


STEPS = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import jax
import jax.numpy as jnp
from farfield.jax import Coulomb

coulomb = Coulomb(accuracy=1e-2, device="cpu", threads=1)
x = 20 * jax.random.uniform(jax.random.key(1), (50000, 3))
q = jnp.where(jnp.arange(50000) % 2 == 0, 1.0, -1.0)

@jax.jit
def step(x, matrix):
    for _ in range(12):
        matrix = jnp.cos(matrix @ matrix)
    return jax.grad(coulomb)(x + 0 * matrix[0, 0], q, 20 * jnp.eye(3))

matrix = jnp.ones((900, 900))
jax.block_until_ready(step(x, matrix))
jax.block_until_ready([step(x + k, matrix + k) for k in range(2)])
print("done")
"""


def test_large_systems_do_not_wait_for_a_thread_of_xla():
    """Arrays that XLA has yet to copy, on one core: pure_callback hangs."""
    found = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, timeout=300, check=False)
    assert found.stdout == "done\n", found.stderr


def test_systems_without_particles_have_derivatives(inputs):
    x, q, cells = np.zeros((0, 3)), np.zeros(0), inputs[2][:1]
    for arrays in ((x, q, cells), (x, q)):
        gradient = jax.grad(lambda *a: CoulombBatch()(*a).sum(), tuple(range(len(arrays))))
        assert not any(abs(g).sum() for g in gradient(*arrays))
        assert not abs(jax.jvp(gradient, arrays, arrays)[1][0]).sum()


def test_cells_may_be_integers(inputs):
    x, q, _ = one(inputs, "periodic")
    cell = [[2, 0, 0], [0, 2, 0], [0, 0, 2]]
    for function, of in ((CoulombBatch(accuracy=1e-8), np.array([cell])), (of_one(), np.array(cell))):
        energy = lambda x, c, f=function: f(x, q, c).sum()  # noqa: E731
        found = jax.grad(energy)(x, of)
        assert abs(found - jax.grad(energy)(x, of.astype(float))).max() == 0


def test_arrays_of_the_caller_may_change_later(inputs):
    x, q, cells = inputs
    ptr, pairs = np.cumsum([0, *SIZES], dtype=np.int32), np.array([[0, 1]], np.int32)
    coulomb = of_one(pairs)
    for function, changed in (
        (jax.jit(lambda x: CoulombBatch()(x, q, cells, ptr=ptr)), ptr),
        (jax.jit(lambda x: coulomb(x, q, 3 * cells[0])), pairs),
    ):
        before = function(x)
        changed[-1] -= 1
        assert jnp.array_equal(function(x), before)


@pytest.mark.parametrize("function", [Coulomb, CoulombBatch])
@pytest.mark.parametrize("name", ["dtype", "boundary"])
def test_options_that_follow_from_arrays_are_refused(function, name):
    with pytest.raises(ValueError, match=name):
        function(**{name: "float64"})


@pytest.mark.parametrize(
    "change, kind, words",
    [
        ({0: lambda a: a.reshape(-1)}, TypeError, ["positions", "[n, 3]", "[39]"]),
        ({0: lambda a: a.astype(int)}, ValueError, ["positions are int64", "float32 or float64"]),
        ({0: lambda a: a * np.nan}, jax.errors.JaxRuntimeError, ["System 0"]),
        ({1: lambda a: a[1:]}, TypeError, ["charges", "[13]", "[12]"]),
        ({1: lambda a: a * 1j}, TypeError, ["charges", "real numbers", "complex128"]),
        ({2: lambda a: a[0]}, TypeError, ["cells", "[systems, 3, 3]"]),
        ({2: lambda a: a[:3]}, ValueError, ["index"]),
        ({2: lambda a: 0 * a}, jax.errors.JaxRuntimeError, ["volume"]),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_another_kind_are_refused(inputs, change, kind, words, compiled):
    given = [change.get(k, lambda a: a)(array) for k, array in enumerate(inputs)]
    function = jax.jit(of_batch()) if compiled else of_batch()
    with pytest.raises(kind) as error:
        jax.block_until_ready(function(*given))
    for word in words:
        assert word in str(error.value)
    assert np.isfinite(function(*inputs)).all()


def test_one_system_of_another_kind_is_refused(inputs):
    x, q, cell = one(inputs, "periodic")
    coulomb = jax.jit(of_one())
    for arrays, kind, word in (
        ((x, q[1:], cell), TypeError, "charges"),
        ((x, q, cell[0]), TypeError, "cell"),
        ((x * np.nan, q, cell), jax.errors.JaxRuntimeError, "particle"),
    ):
        with pytest.raises(kind, match=word):
            jax.block_until_ready(coulomb(*arrays))
    assert np.isfinite(coulomb(x, q, cell))


def test_first_particles_of_systems_ascend_from_zero(inputs):
    x, q, cells = inputs
    for ptr in ([1, 5, 13], [0, 14, 13]):
        with pytest.raises(ValueError, match="ptr must begin with 0"):
            CoulombBatch()(x, q, cells[:2], ptr=ptr)


def test_systems_have_to_be_known(inputs):
    with pytest.raises(TypeError, match="batch must be known"):
        jax.jit(lambda batch: CoulombBatch()(*inputs, batch=batch))(INDEX)


def test_the_examples_of_the_documentation_run(capsys):
    page = Path(__file__).parents[2] / "docs/python.md"
    first, second = (
        part.split("```")[0] for part in page.read_text().split("## JAX")[1].split("```python\n")[1:]
    )
    exec(first, {})
    assert re.fullmatch(r"\[ *(-?[\d.e+]+ *){3}\]", capsys.readouterr().out.strip())
    exec(second, {})
    assert float(capsys.readouterr().out) > 0
