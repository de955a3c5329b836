# SPDX-License-Identifier: LGPL-2.1-or-later
"""Arrays in the memory of a GPU: results stay there, and are those of arrays of the host."""

import functools
import importlib
import os
import pickle
import shutil

import numpy as np
import pytest

import farfield
from farfield.device_arrays import is_on_gpu, place_of

core = pytest.importorskip("farfield._core")
if not hasattr(core.DoubleSolver, "evaluate_on_gpu"):
    pytest.skip("farfield was built without CUDA", allow_module_level=True)
if not shutil.which("nvidia-smi"):
    pytest.skip("there is no GPU", allow_module_level=True)

N = 300
BOX = [3.0, 3.2, 3.4]


def on_gpu(package, values):
    if package == "torch":
        return importlib.import_module("torch").as_tensor(values, device="cuda")
    if package == "jax":
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        return jax.device_put(values, jax.devices("gpu")[0])
    return importlib.import_module("cupy").asarray(values)


def on_host(array):
    return np.asarray(array.get() if hasattr(array, "get") else
                      array.cpu() if hasattr(array, "cpu") else array)


def package_of(array):
    return type(array).__module__.partition(".")[0].replace("jaxlib", "jax")


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def system(dtype):
    random = np.random.default_rng(3)
    x = (random.random((N, 3)) * BOX).astype(dtype)
    return x, random.choice([-1.0, 1.0], N), (random.random((50, 3)) * 9 - 3).astype(dtype)


def solver(dtype, q, **options):
    result = farfield.Solver(dtype=dtype, device="gpu", reproducible=True, **options)
    result.set_charges(q)
    return result


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
@pytest.mark.parametrize("package", ["torch", "cupy", "jax"])
def test_results_are_those_of_arrays_of_the_host(system, dtype, package, boundary):
    pytest.importorskip(package)
    x, q, points = system
    one = solver(dtype, q, boundary=boundary)
    one.set_dipoles(0.01 * np.random.default_rng(5).normal(size=x.shape))
    one.set_quadrupoles(np.tile(np.diag([1e-3, 1e-3, -2e-3]), (len(x), 1, 1)))
    wanted = dict.fromkeys(("virial", "potentials", "gradients", "hessians", "torques"), True)
    expected = one.evaluate(x, BOX, **wanted)
    own = one.evaluate(on_gpu(package, x), BOX, **wanted)
    rounding = 1e-5 if dtype == "float32" else 1e-12
    assert own.energy == pytest.approx(expected.energy, rel=rounding)
    np.testing.assert_allclose(own.virial, expected.virial, atol=rounding * abs(own.energy))
    one.set_dipoles(None)
    one.set_quadrupoles(None)
    names = [name for name in wanted if name != "virial"]
    for ours, theirs in (
        *((getattr(own, name), getattr(expected, name)) for name in ("forces", *names)),
        *zip(one.evaluate_at(on_gpu(package, x), BOX, on_gpu(package, points)),
             one.evaluate_at(x, BOX, points)),
    ):
        assert package_of(ours) == package
        assert str(ours.dtype).endswith(dtype)
        assert ours.__dlpack_device__()[0] == 2
        np.testing.assert_allclose(on_host(ours), theirs, atol=rounding * np.abs(theirs).max())


@pytest.mark.parametrize("package", ["torch", "cupy", "jax"])
def test_tangents_are_those_of_arrays_of_the_host(system, dtype, package):
    pytest.importorskip(package)
    x, q, _ = system
    random = np.random.default_rng(8)
    direction = {"dx": random.normal(size=x.shape).astype(dtype), "dcharges": random.normal(size=N).astype(dtype)}
    one = solver(dtype, q)
    for names in ("dx", "dcharges"), ("dx",), ("dcharges",), ():
        own = one.tangent(on_gpu(package, x), BOX, **{name: on_gpu(package, direction[name]) for name in names})
        expected = one.tangent(x, BOX, **{name: direction[name] for name in names})
        for name in ("forces", "potentials"):
            ours, theirs = getattr(own, name), getattr(expected, name)
            assert package_of(ours) == package
            rounding = 1e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(on_host(ours), theirs, atol=rounding * np.abs(theirs).max())
    with pytest.raises(ValueError, match="dx must be in the memory of the GPU"):
        one.tangent(on_gpu(package, x), BOX, dx=direction["dx"])


@pytest.mark.parametrize("package", ["torch", "cupy", "jax"])
def test_charges_are_those_of_arrays_of_the_host(system, dtype, package):
    pytest.importorskip(package)
    x, q, _ = system
    q = q.astype(dtype)
    charges = q, 1.25 * q, np.where(np.arange(N) % 7, q, 0).astype(dtype), 0.5 * q, 0 * q, 2 * q
    one, other = solver(dtype, q), solver(dtype, q)
    rounding = 1e-5 if dtype == "float32" else 1e-12
    for own in charges:
        given = on_gpu(package, own.copy())
        one.set_charges(given)
        other.set_charges(own)
        ours, theirs = (each.evaluate(x, BOX, potentials=True) for each in (one, other))
        for name in ("forces", "potentials"):
            values = getattr(theirs, name)
            np.testing.assert_allclose(getattr(ours, name), values, atol=rounding * max(np.abs(values).max(), 1e-9))
    one.set_charges(on_gpu(package, q))
    with pytest.raises(ValueError, match="charge of particle 7"):
        one.set_charges(on_gpu(package, np.where(np.arange(N) == 7, np.nan, 3 * q).astype(dtype)))
    forces = one.evaluate(x, BOX).forces
    np.testing.assert_allclose(pickle.loads(pickle.dumps(one)).evaluate(x, BOX).forces, forces, rtol=rounding)
    for wrong in np.stack((q, q)), q.astype("float16"):
        with pytest.raises(ValueError, match=rf"charges on the GPU has the type .*{dtype} and \(n,\)"):
            one.set_charges(on_gpu(package, wrong))
    together = x.copy()
    together[3] = together[9]
    with pytest.raises(ValueError, match="Particles 3 and 9 are at one place"):
        one.evaluate(together, BOX)


@pytest.mark.parametrize("m2l", ["hierarchy", "fft", "symmetric", "gemm"])
@pytest.mark.parametrize("boundary", ["open", "slab"])
def test_all_engines_do_without_images(dtype, boundary, m2l):
    random = np.random.default_rng(4)
    x = (random.random((4000, 3)) * BOX).astype(dtype)
    q = random.uniform(-1, 1, len(x))
    exact = farfield.Solver(1e-7, boundary=boundary, device="cpu")
    one = farfield.Solver(1e-4, dtype, boundary=boundary, device="gpu", cell_size=0.4, m2l=m2l)
    forces = []
    for own in (exact, one):
        own.set_charges(q)
        forces.append(own.evaluate(x, BOX).forces)
    assert one.setup["m2l"] == m2l
    assert one.setup["levels"] > 1 or m2l == "fft"
    error = np.linalg.norm(forces[1] - forces[0]) / np.linalg.norm(forces[0])
    assert error <= 1e-4


def test_work_on_other_streams_is_complete_first(system, dtype):
    torch = pytest.importorskip("torch")
    x, q, _ = system
    one = solver(dtype, q)
    expected = one.evaluate(x, BOX).forces
    with torch.cuda.stream(torch.cuda.Stream()):
        large = torch.ones(4096, 4096, device="cuda")
        for _ in range(20):
            large = large @ large / 4096
        late = torch.as_tensor(x, device="cuda") + (large[0, 0] - 1).to(getattr(torch, dtype))
        forces = one.evaluate(late, BOX).forces
    np.testing.assert_allclose(forces.cpu(), expected, atol=1e-3 * np.abs(expected).max())


def test_results_outlive_the_solver(system, dtype):
    torch = pytest.importorskip("torch")
    x, q, _ = system
    one = solver(dtype, q)
    forces = one.evaluate(torch.as_tensor(x, device="cuda"), BOX).forces
    before = forces.cpu().numpy().copy()
    one.evaluate(torch.as_tensor(x[::-1].copy(), device="cuda"), BOX)
    del one
    assert np.array_equal(forces.cpu(), before)


def test_memory_is_returned(system, dtype):
    torch = pytest.importorskip("torch")
    x, q, _ = system
    one = solver(dtype, np.tile(q, 400))
    tall = torch.as_tensor(np.tile(x, (400, 1)), device="cuda")
    tall += torch.randn_like(tall) * 0.01
    free = []
    for _ in range(60):
        one.evaluate(tall, np.multiply(BOX, 8))
        free.append(torch.cuda.mem_get_info()[0])
    # 60 results are 86 MB, or twice that
    assert free[5] - free[-1] < 30e6


def test_errors_are_clear(system, dtype):
    torch = pytest.importorskip("torch")
    x, q, points = system
    one = solver(dtype, q)
    broken = x.copy()
    broken[7, 1] = np.nan
    with pytest.raises(ValueError, match="particle 7"):
        one.evaluate(torch.as_tensor(broken, device="cuda"), BOX)
    with pytest.raises(ValueError, match="299 positions, but 300"):
        one.evaluate(torch.as_tensor(x[1:], device="cuda"), BOX)
    with pytest.raises(ValueError, match="float16"):
        one.evaluate(torch.as_tensor(x, device="cuda").half(), BOX)
    with pytest.raises(ValueError, match=r"\(300, 2\)"):
        one.evaluate(torch.as_tensor(x, device="cuda")[:, :2], BOX)
    with pytest.raises(ValueError, match="both"):
        one.evaluate_at(x, BOX, torch.as_tensor(points, device="cuda"))
    on_cpu = farfield.Solver(dtype=dtype, device="cpu")
    on_cpu.set_charges(q)
    with pytest.raises(RuntimeError, match="device 'gpu'"):
        on_cpu.evaluate(torch.as_tensor(x, device="cuda"), BOX)


@pytest.mark.parametrize("boundary", ["periodic", "slab", "open"])
def test_dipoles_are_those_of_the_cpu(system, dtype, boundary):
    """With derivatives on the host, with forces alone on the GPU, and tangents of charges."""
    pytest.importorskip("torch")
    x, q, _ = system
    random = np.random.default_rng(4)
    dipoles, dx = 0.02 * random.normal(size=x.shape), random.normal(size=x.shape)
    accuracy = 1e-5 if dtype == "float32" else 1e-8
    own, other = (farfield.Solver(accuracy, dtype, device=device, boundary=boundary) for device in ("gpu", "cpu"))
    found = []
    for one in own, other:
        one.set_charges(q)
        tangent = one.tangent(x, BOX, dx=dx, dcharges=q)
        one.set_dipoles(dipoles)
        result = one.evaluate(x, BOX, virial=True, potentials=True, gradients=True, hessians=True)
        found.append((tangent.forces, tangent.potentials, result.forces, result.potentials, result.gradients,
                      result.hessians, result.virial, result.energy))
    there = own.evaluate(on_gpu("torch", x), BOX, potentials=True)
    pairs = [*zip(*found), (on_host(there.forces), found[1][2]), (on_host(there.potentials), found[1][3])]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, atol=20 * accuracy * np.abs(theirs).max())


def places_of(monkeypatch, name):
    """Where the positions are, of each call of a method of a solver from here on."""
    places, method = [], getattr(farfield.Solver, name)

    def noted(self, positions, *arguments, **options):
        places.append("cpu" if isinstance(positions, np.ndarray) else "cuda")
        return method(self, positions, *arguments, **options)

    monkeypatch.setattr(farfield.Solver, name, noted)
    return places


@pytest.mark.parametrize("periodic", [True, False])
def test_gradients_in_torch_stay_on_the_gpu(system, dtype, periodic, monkeypatch):
    torch = pytest.importorskip("torch")
    from farfield.torch import Coulomb

    places = places_of(monkeypatch, "evaluate")
    x, q, _ = system
    cell = np.diag(BOX) + 0.1 * np.eye(3)[::-1]
    gradients = []
    for device in ("cpu", "cuda"):
        inputs = [
            torch.tensor(a, dtype=getattr(torch, dtype), device=device, requires_grad=True)
            for a in ((x, q, cell) if periodic else (x, q))
        ]
        Coulomb(device="gpu", reproducible=True)(*inputs).backward()
        assert all(tensor.grad.device == tensor.device for tensor in inputs)
        gradients.append([tensor.grad.cpu().numpy() for tensor in inputs])
    assert places == ["cpu", "cuda"]
    for ours, theirs in zip(*gradients):
        np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


def test_second_derivatives_in_torch_stay_on_the_gpu(system, dtype, monkeypatch):
    torch = pytest.importorskip("torch")
    from farfield.torch import Coulomb

    places = places_of(monkeypatch, "tangent")
    x, q, _ = system
    found = []
    for device in ("cpu", "cuda"):
        inputs = [torch.tensor(a, dtype=getattr(torch, dtype), device=device, requires_grad=True) for a in (x, q)]
        cell = torch.tensor(np.diag(BOX) + 0.1 * np.eye(3)[::-1], device=device)
        energy = Coulomb(device="gpu", reproducible=True)(*inputs, cell)
        (gradient,) = torch.autograd.grad(energy, inputs[0], create_graph=True)
        second = torch.autograd.grad((gradient**2).sum() / 1e6, inputs)
        assert all(tensor.device.type == device for tensor in second)
        found.append([tensor.cpu().numpy() for tensor in second])
    assert places == ["cpu", "cuda"]
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


def test_losses_on_stresses_in_torch_stay_on_the_gpu(system, dtype):
    torch = pytest.importorskip("torch")
    from farfield.torch import Coulomb

    x, q, _ = system
    found = []
    for device in ("cpu", "cuda"):
        arrays = x, q, (np.diag(BOX) + 0.1 * np.eye(3)[::-1]).astype(dtype)
        inputs = [torch.tensor(a, dtype=getattr(torch, dtype), device=device, requires_grad=True) for a in arrays]
        energy = Coulomb(device="cpu" if device == "cpu" else "gpu")(*inputs)
        (stress,) = torch.autograd.grad(energy, inputs[2], create_graph=True)
        second = torch.autograd.grad((stress**2).sum() / 1e6, inputs)
        assert all(tensor.device.type == device for tensor in second)
        found.append([tensor.cpu().numpy() for tensor in second])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


@pytest.mark.parametrize("package", ["torch", "cupy"])
def test_arrays_of_the_caller_are_filled(system, dtype, package):
    pytest.importorskip(package)
    x, q, _ = system
    one = solver(dtype, q)
    expected = one.evaluate(x, BOX, potentials=True)
    there = on_gpu(package, x)
    forces, potentials = on_gpu(package, 0 * x), on_gpu(package, np.zeros(N, dtype))
    place = place_of(np.dtype(dtype), {"x": there})[0]
    assert place.more[0] is not None  # the stream of the package is known
    outputs = forces, potentials, None, None, None
    one.evaluate_into(place, there, BOX, outputs)
    rounding = 1e-5 if dtype == "float32" else 1e-12
    for ours, theirs in ((forces, expected.forces), (potentials, expected.potentials)):
        np.testing.assert_allclose(on_host(ours), theirs, atol=rounding * np.abs(theirs).max())


SIZES = [5, 1, 0, 130, 64]


def batches(dtype):
    """Positions, charges, offsets, and boxes, one of them left-handed."""
    random = np.random.default_rng(8)
    boxes = (np.eye(3) + random.uniform(-0.2, 0.2, (5, 3, 3))) * np.cbrt(np.maximum(SIZES, 5) / 100)[:, None, None]
    boxes[3] = boxes[3][[1, 0, 2]]
    index = np.repeat(np.arange(5), SIZES)
    x = np.einsum("na,nab->nb", random.uniform(-1, 2, (len(index), 3)), boxes[index]).astype(dtype)
    q = random.uniform(-1, 1, len(x)).astype(dtype)
    return x, q, np.cumsum([0, *SIZES]), boxes


def is_close(found, expected, bound):
    found, expected = (np.asarray(values, dtype=float) for values in (found, expected))
    return np.linalg.norm(found - expected) <= bound * np.linalg.norm(expected)


@pytest.mark.parametrize("options", [{}, {"boundary": "open"}, {"smearing": 0.1}])
def test_batches_are_those_of_the_cpu(dtype, options):
    accuracy = 1e-5 if dtype == "float32" else 1e-9
    systems = batches(dtype)
    direction = {"dx": 0.01 * systems[0][::-1], "dcharges": systems[1][::-1], "dboxes": 0.1 * systems[3]}
    results = []
    for device in ("gpu", "cpu"):
        batch = farfield.Batch(accuracy, dtype, device=device, **options)
        assert batch.setup["device"] == device
        result = batch(*systems, potentials=True, virials=True)
        tangent = batch.tangent(*systems, **direction, errors=result.errors, virials=True)
        results.append([getattr(part, name) for part in (result, tangent)
                        for name in ("forces", "potentials", "virials")] + [result.energies])
        assert batch.setup["measured_error"] <= accuracy
    for found, expected in zip(*results):
        assert is_close(found, expected, 10 * accuracy)


def test_batches_do_not_work_in_children(dtype):
    systems = batches(dtype)
    own = farfield.Batch(dtype=dtype, device="gpu")
    own(*systems)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own(*systems)
        except RuntimeError as error:
            code = int("before fork" not in str(error))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    own(*systems)


@pytest.mark.parametrize("boundary", ["periodic", "open"])
def test_kernel_sums_are_those_of_the_cpu(dtype, boundary):
    accuracy = 1e-4 if dtype == "float32" else 1e-7
    random = np.random.default_rng(12)
    x, at = random.random((2, 5000, 3)) * BOX
    q = random.uniform(-1, 1, (5000, 2))
    box = BOX if boundary == "periodic" else None
    results = []
    for device in ("gpu", "cpu"):
        one = farfield.KernelSum(farfield.Kernel.yukawa(2), accuracy, dtype, boundary=boundary, device=device)
        copy = pickle.loads(pickle.dumps(one))
        results.append([one(x, q, box).fields, copy(x, q, box, at=at).fields])
        for own in (one, copy):
            assert own.setup["device"] == device
            assert own.setup["measured_error"] <= accuracy
    for found, expected in zip(*results):
        assert is_close(found, expected, 2 * accuracy)  # each is as accurate as was asked


def loss_of_batches(inputs, ptr, **options):
    """Gradients of a loss on forces, stresses and energies."""
    torch = importlib.import_module("torch")
    from farfield.torch import CoulombBatch

    x, q, cells = inputs
    parameter = torch.tensor(0.8, dtype=x.dtype, device=x.device, requires_grad=True)
    energies = CoulombBatch(**options)(x, parameter * q, cells, ptr=ptr)
    gradients = torch.autograd.grad(energies.sum(), (x, cells), create_graph=True)
    loss = sum((gradient.double() ** 2).sum() / 1e6 for gradient in gradients) + energies.double().sum() / 1e3
    return energies, torch.autograd.grad(loss, (x, q, cells, parameter))


@pytest.mark.parametrize("vectors", [3, 2])  # of boxes, and of slabs
def test_batches_in_torch_stay_on_the_gpu(dtype, vectors):
    torch = pytest.importorskip("torch")
    accuracy = 1e-5 if dtype == "float32" else 1e-9
    x, q, offsets, boxes = batches(dtype)
    boxes = boxes[:, :vectors]
    found = []
    for device in ("cuda", "cpu"):
        inputs = [torch.tensor(a, device=device, requires_grad=True) for a in (x, q, boxes.astype(dtype))]
        ptr = torch.tensor(offsets, device=device)
        options = {"device": "cpu"} if device == "cpu" else {}
        # another stream than the default one
        stream = torch.cuda.Stream() if device == "cuda" else None
        with torch.cuda.stream(stream):
            energies, gradients = loss_of_batches(inputs, ptr, accuracy=accuracy, **options)
        torch.cuda.synchronize()
        assert energies.device.type == device and energies.dtype == inputs[0].dtype
        assert all(gradient.device.type == device for gradient in gradients)
        found.append([tensor.detach().cpu() for tensor in (energies, *gradients)])
    for own, expected in zip(*found):
        assert is_close(own, expected, 30 * accuracy)


@pytest.mark.parametrize("vectors", [3, 2])
def test_batches_have_two_derivatives_on_the_gpu(dtype, vectors):
    torch = pytest.importorskip("torch")
    from farfield.torch import CoulombBatch

    if dtype == "float32":
        pytest.skip("differences need double precision")
    random = np.random.default_rng(2)
    cells = 0.6 * np.eye(3)[:vectors] + random.uniform(-0.1, 0.1, (2, vectors, 3))
    x, q = random.uniform(0, 0.6, (9, 3)), random.uniform(-1, 1, 9)
    tensors = [torch.tensor(a, device="cuda", requires_grad=True) for a in (x, q, cells)]
    function, ptr = CoulombBatch(accuracy=1e-10), torch.tensor([0, 4, 9])
    tolerances = {"eps": 1e-5, "atol": 1e-2, "rtol": 1e-4}
    assert torch.autograd.gradcheck(lambda *t: function(*t, ptr=ptr), tensors, **tolerances)
    assert torch.autograd.gradgradcheck(lambda *t: function(*t, ptr=ptr), tensors, **tolerances)


@pytest.mark.parametrize("kind", ["batch", "ptr", "ptr on the host"])
def test_asynchronous_batches_train_without_a_wait(dtype, kind):
    torch = pytest.importorskip("torch")
    from farfield.torch import CoulombBatch

    x, q, offsets, boxes = batches(dtype)
    inputs = [torch.tensor(a, device="cuda", requires_grad=True) for a in (x, q, boxes.astype(dtype))]
    starts = torch.tensor(offsets, device="cpu" if "host" in kind else "cuda")
    index = torch.arange(len(boxes)).repeat_interleave(torch.tensor(offsets).diff()).cuda()
    systems = {"batch": index} if kind == "batch" else {"ptr": starts}

    def step(function):
        energies = function(*inputs, **systems)
        gradients = torch.autograd.grad(energies.sum(), (inputs[0], inputs[2]), create_graph=True)
        weights = torch.linspace(0.5, 2, len(boxes), dtype=inputs[0].dtype, device="cuda")
        loss = sum((gradient.double() ** 2).sum() / 1e6 for gradient in gradients) + (weights * energies).sum() / 1e3
        return energies, *torch.autograd.grad(loss, inputs)

    expected = step(CoulombBatch(accuracy=1e-5))
    function = CoulombBatch(accuracy=1e-5, asynchronous=True)
    step(function)  # makes room
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(2 * 10**9)  # of the GPU's cycles: a second
        found = step(function)
        is_done = torch.cuda.current_stream().query()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert not is_done
    function.finish()
    for own, other in zip(found, expected):
        assert is_close(own.detach().cpu(), other.detach().cpu(), 1e-6 if dtype == "float32" else 1e-12)


def test_asynchronous_batches_say_later_what_they_refuse(dtype):
    torch = pytest.importorskip("torch")
    from farfield.torch import CoulombBatch

    x, q, offsets, boxes = (torch.tensor(a, device="cuda") for a in batches(dtype))
    index = torch.arange(len(boxes)).repeat_interleave(offsets.cpu().diff()).cuda()
    waits, function = CoulombBatch(), CoulombBatch(asynchronous=True)
    expected = waits(x, q, boxes, batch=index)
    assert torch.equal(function(x, q, boxes, batch=index), expected)
    for wrong in (index.flip(0), index + 1, index - 1):
        with pytest.raises(ValueError, match="index must ascend, and be between 0 and 4"):
            waits(x, q, boxes, batch=wrong)
        assert torch.isnan(function(x, q, boxes, batch=wrong)).all()
        with pytest.raises(ValueError, match="earlier call"):
            function.finish()
    bad = x.clone()
    bad[3, 1] = torch.nan
    function(bad, q, boxes, batch=index)
    torch.cuda.synchronize()
    with pytest.raises(ValueError, match="position or a charge that is not finite"):
        function(x, q, boxes, batch=index)
    assert torch.equal(function(x, q, boxes, batch=index), expected)


def test_batches_refuse_tensors_in_several_places(dtype):
    torch = pytest.importorskip("torch")
    from farfield.torch import CoulombBatch

    x, q, offsets, boxes = (torch.tensor(a) for a in batches(dtype))
    with pytest.raises(ValueError, match="charges must be on cuda"):
        CoulombBatch()(x.cuda(), q, boxes.cuda(), ptr=offsets)
    with pytest.raises(ValueError, match="option device is 'cpu'"):
        CoulombBatch(device="cpu")(x.cuda(), q.cuda(), boxes.cuda(), ptr=offsets)
    with pytest.raises(ValueError, match="5 systems, but 4 boxes"):
        CoulombBatch()(x.cuda(), q.cuda(), boxes.cuda()[1:], ptr=offsets)
    with pytest.raises(ValueError, match="charges"):
        CoulombBatch(channels=2)(x.cuda(), q.cuda(), boxes.cuda(), ptr=offsets)
    x[7] = float("nan")
    with pytest.raises(ValueError, match="System 3"):
        CoulombBatch()(x.cuda(), q.cuda(), boxes.cuda(), ptr=offsets)


@pytest.fixture
def jax(dtype):
    module = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in module.devices()):
        pytest.skip("JAX has no GPU")
    module.config.update("jax_enable_x64", dtype == "float64")
    yield module
    module.config.update("jax_enable_x64", False)


def derivatives_in_jax(jax, function, arrays, device):
    """Energies, gradients, and their products with directions: of positions and charges, and of all."""
    own = [jax.device_put(a, device) for a in arrays]
    gradient = jax.grad(lambda *a: function(*a).sum(), tuple(range(len(own))))

    @jax.jit
    def derivatives(*a):
        along = tuple(jax.numpy.cos(part) for part in a)
        first = jax.jvp(lambda *b: gradient(*b, *a[2:])[:2], a[:2], along[:2])[1]
        return function(*a), gradient(*a), first, jax.jvp(gradient, a, along)[1]

    found = jax.block_until_ready(jax.tree.leaves(derivatives(*own)))
    assert all(array.devices() == {device} for array in found)
    return found


@pytest.mark.parametrize("device", ["gpu", "cpu"])  # of the library; arrays are on a GPU
@pytest.mark.parametrize("kind", ["periodic", "slab", "open", "batch"])
def test_derivatives_in_jax_are_those_of_the_cpu(system, dtype, jax, kind, device, monkeypatch):
    from farfield.jax import Coulomb, CoulombBatch

    accuracy = 1e-5 if dtype == "float32" else 1e-8
    calls, method = [], farfield.Solver.evaluate_into
    monkeypatch.setattr(farfield.Solver, "evaluate_into", lambda *given: calls.append(given[1:3]) or method(*given))
    if kind == "batch":
        x, q, offsets, boxes = batches(dtype)
        arrays = x, q, boxes.astype(dtype)
    else:
        x, q, _ = system
        cell = (np.diag(BOX) + 0.1 * np.eye(3)[::-1]).astype(dtype)[[1, 0, 2]]  # left-handed
        arrays = x, q.astype(dtype), *{"periodic": [cell], "slab": [cell[:2]], "open": []}[kind]
    found = []
    for own, place in ((device, jax.devices("gpu")[0]), ("cpu", jax.devices("cpu")[0])):
        calls.clear()
        if kind == "batch":
            function = functools.partial(CoulombBatch(accuracy=accuracy, device=own), ptr=offsets)
        else:
            function = Coulomb(accuracy=accuracy, device=own)
        found.append(derivatives_in_jax(jax, function, arrays, place))
        if kind != "batch":
            is_there = own == "gpu"
            assert calls and all((given[0].suffix, is_on_gpu(given[1])) == ("_on_gpu" * is_there, is_there)
                                 for given in calls)
    for ours, theirs in zip(*found):
        assert is_close(ours, theirs, 50 * accuracy)


def test_losses_in_jax_have_gradients_on_the_gpu(system, dtype, jax):
    from farfield.jax import Coulomb

    x, q, _ = system
    found = []
    for own in "gpu", "cpu":
        coulomb = Coulomb(accuracy=1e-5 if dtype == "float32" else 1e-8, device=own)
        loss = jax.jit(jax.grad(lambda x, q, c=coulomb: (jax.grad(c)(x, q) ** 2).sum() / 1e6, (0, 1)))
        place = jax.devices(own)[0]
        found.append(loss(jax.device_put(x, place), jax.device_put(q.astype(dtype), place)))
    for ours, theirs in zip(*found):
        assert is_close(ours, theirs, 1e-3)


def test_work_of_jax_is_complete_first(system, dtype, jax):
    """In a compiled function, whose other kernels take longer than the call of the library."""
    from farfield.jax import Coulomb

    x, q, _ = system
    coulomb = Coulomb(accuracy=1e-4, device="gpu", reproducible=True)

    @jax.jit
    def gradients(x, q, large):
        expected = jax.grad(coulomb)(x, q)
        for _ in range(20):
            large = large @ large / len(large)
        late = jax.grad(coulomb)(x + (large[0, 0] - 1), q)
        return late, expected, late + 0

    place = jax.devices("gpu")[0]
    given = [jax.device_put(a, place) for a in (x, q.astype(dtype), np.ones((4096, 4096), dtype))]
    for _ in range(3):
        late, expected, copy = gradients(*given)
        np.testing.assert_allclose(late, expected, atol=1e-3 * np.abs(expected).max())
        np.testing.assert_array_equal(late, copy)


def test_errors_in_jax_have_their_text(system, dtype, jax):
    from farfield.jax import Coulomb, CoulombBatch

    x, q, _ = system
    place = jax.devices("gpu")[0]
    broken = x.copy()
    broken[7, 1] = np.nan
    x, broken, q = (jax.device_put(a, place) for a in (x, broken, q.astype(dtype)))
    for kind, word in ((Coulomb, "particle 7"), (CoulombBatch, "System 0")):
        function = jax.jit(kind(device="gpu"))
        with pytest.raises(jax.errors.JaxRuntimeError, match=word):
            jax.block_until_ready(function(broken, q))
        assert np.isfinite(function(x, q)).all()


def test_systems_without_particles_in_jax(dtype, jax):
    from farfield.jax import CoulombBatch

    place = jax.devices("gpu")[0]
    arrays = [jax.device_put(a.astype(dtype), place) for a in (np.zeros((0, 3)), np.zeros(0), np.eye(3)[None])]
    gradients = jax.jit(jax.grad(lambda *a: CoulombBatch(device="gpu")(*a).sum(), (0, 1, 2)))(*arrays)
    assert not any(abs(gradient).sum() for gradient in gradients)
