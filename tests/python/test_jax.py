# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions of JAX: energies of plain sums, and derivatives by differences."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from farfield.jax import Coulomb, CoulombBatch  # noqa: E402

from . import ewald  # noqa: E402

SIZES = [5, 1, 0, 7]
BATCH = np.repeat(np.arange(4), SIZES)
# along random directions, of which terms may cancel
SLOPES = {"modes": ("fwd", "rev"), "eps": 1e-5, "atol": 1e-3, "rtol": 5e-5}


@pytest.fixture(autouse=True)
def double():
    """JAX with float64 in these tests alone."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture
def inputs():
    """Positions, charges that do not add up to zero, one of them 0, and cells turned in space, one left-handed."""
    random = np.random.default_rng(5)
    cells = 0.6 * np.eye(3) + random.uniform(-0.1, 0.1, (4, 3, 3))
    cells[3] = cells[3][[1, 0, 2]]
    sites = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), 1) / 2
    fractions = np.concatenate([sites[:n] + random.uniform(0, 0.3, (n, 3)) for n in SIZES])
    x = np.einsum("na,nab->nb", fractions + random.integers(-2, 3, fractions.shape), cells[BATCH])
    q = random.uniform(-1, 1, len(x))
    q[3] = 0
    return x, q, cells


def of_batch(accuracy=1e-10, **options):
    function = CoulombBatch(accuracy=accuracy, threads=1, device="cpu", **options)
    return lambda *arrays: function(*arrays, batch=BATCH)


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


@pytest.mark.parametrize("hessian", [jax.hessian, lambda f: jax.jacrev(jax.jacfwd(f))])
def test_the_hessian_is_symmetric_and_that_of_differences(inputs, hessian):
    x, q, cells = inputs

    def energy(x):
        return of_batch()(x, q, cells).sum()

    found = hessian(energy)(x).reshape(x.size, x.size)
    assert abs(found - found.T).max() <= 1e-12 * abs(found).max()
    step = 1e-5 * np.eye(x.size)[0].reshape(x.shape)
    column = (jax.grad(energy)(x + step) - jax.grad(energy)(x - step)).reshape(-1) / 2e-5
    assert abs(found[0] - column).max() <= 1e-7 * abs(found).max()


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
    with pytest.raises(NotImplementedError, match="CoulombBatch has second ones"):
        jax.hessian(of_one())(*one(inputs, "periodic"))


def test_functions_can_be_copied_and_saved(inputs):
    for function, arrays in ((Coulomb(accuracy=1e-6), one(inputs, "slab")), (CoulombBatch(), one(inputs, "open"))):
        expected = function(*arrays)
        assert jnp.array_equal(copy.deepcopy(function)(*arrays), expected)
        assert jnp.array_equal(pickle.loads(pickle.dumps(function))(*arrays), expected)


@pytest.mark.parametrize("function", [Coulomb, CoulombBatch])
@pytest.mark.parametrize("name", ["dtype", "boundary"])
def test_options_that_follow_from_arrays_are_refused(function, name):
    with pytest.raises(ValueError, match=name):
        function(**{name: "float64"})


@pytest.mark.parametrize(
    "change, words",
    [
        ({0: lambda a: a.reshape(-1)}, ["positions", "[n, 3]", "[39]"]),
        ({0: lambda a: a.astype(int)}, ["positions are int64", "float32 or float64"]),
        ({0: lambda a: a * np.nan}, ["System 0"]),
        ({1: lambda a: a[1:]}, ["charges"]),
        ({2: lambda a: a[0]}, ["cells", "[systems, 3, 3]"]),
        ({2: lambda a: a[:3]}, ["index"]),
        ({2: lambda a: 0 * a}, ["volume"]),
    ],
)
def test_arrays_of_another_kind_are_refused(inputs, change, words):
    given = [change.get(k, lambda a: a)(array) for k, array in enumerate(inputs)]
    with pytest.raises((TypeError, ValueError, jax.errors.JaxRuntimeError)) as error:
        of_batch()(*given).block_until_ready()
    for word in words:
        assert word in str(error.value)


def test_systems_have_to_be_known(inputs):
    with pytest.raises(TypeError, match="batch must be known"):
        jax.jit(lambda batch: CoulombBatch()(*inputs, batch=batch))(BATCH)


def test_the_examples_of_the_documentation_run(capsys):
    page = Path(__file__).parents[2] / "docs/python.md"
    first, second = (
        part.split("```")[0] for part in page.read_text().split("## JAX")[1].split("```python\n")[1:]
    )
    exec(first, {})
    assert re.fullmatch(r"\[ *(-?[\d.e+]+ *){3}\]", capsys.readouterr().out.strip())
    exec(second, {})
    assert float(capsys.readouterr().out) > 0
