"""A step of training on forces with a batch of systems on one thread, beside an Ewald sum that PyTorch differentiates.

    build/python-package/bin/python3 -m tests.bench.batch_training --json batch_training.json

The step: energies with charges that depend on two parameters, forces, the gradient of a loss on forces by both
parameters and by all positions. Systems are those of batch_speed. The sum in PyTorch has the same accuracy, and the
splitting that is fastest for it of several; its lists of pairs and waves are made before, and are not counted. Times
are those of the fastest of several steps, which take turns: of the processor, or of a clock with --device gpu.
"""

import numpy as np
import torch

from farfield.torch import CoulombBatch
from tests.bench.batch_speed import clock_of, run, systems

COULOMB = 138.935458


class PlainEwald:
    """Sums over a list of pairs and a table of waves, of all systems at once, padded to the most waves."""

    def __init__(self, x, cells, index, splitting, accuracy):
        self.a, exponent = splitting, np.sqrt(-np.log(accuracy))
        cutoff, longest = exponent / splitting, 2 * splitting * exponent
        pairs, shifts, waves = [], [], []
        for s, cell in enumerate(cells):
            own = np.flatnonzero(index == s)
            p, w = _pairs(x[own], cell, cutoff), _waves(cell, longest)
            pairs.append(own[p[0]])
            shifts.append(p[1] @ cell)
            waves.append(w)
        most = max(map(len, waves))
        table = np.zeros((len(cells), most, 3))
        for s, w in enumerate(waves):
            table[s, : len(w)] = w
        pairs, shifts = np.concatenate(pairs), np.concatenate(shifts)
        dtype = torch.as_tensor(x).dtype
        self.i, self.j = torch.as_tensor(pairs.T.copy())
        self.shifts, self.waves = torch.as_tensor(shifts).to(dtype), torch.as_tensor(table).to(dtype)
        square = (self.waves**2).sum(-1)
        factor = torch.exp(-square / (4 * splitting**2)) / square
        volumes = torch.as_tensor(np.abs(np.linalg.det(cells))).to(dtype)
        self.factors = 4 * np.pi / volumes[:, None] * torch.where(square > 0, factor, torch.zeros_like(factor))
        self.index = torch.as_tensor(index)

    def to(self, place):
        """Moves all lists there."""
        for name, value in vars(self).items():
            setattr(self, name, value.to(place) if isinstance(value, torch.Tensor) else value)
        return self

    def __call__(self, x, q):
        d = x[self.i] - x[self.j] + self.shifts
        r = d.norm(dim=1)
        of_pairs = q[self.i] * q[self.j] * torch.special.erfc(self.a * r) / r
        phases = (x[:, None] * self.waves[self.index]).sum(-1)
        shape = self.waves.shape[:2]
        real, imaginary = (
            x.new_zeros(shape).index_add(0, self.index, q[:, None] * f(phases)) for f in (torch.cos, torch.sin)
        )
        of_waves = (self.factors * (real**2 + imaginary**2)).sum(1)
        own = -self.a / np.sqrt(np.pi) * q**2
        energies = of_waves.index_add(0, self.index[self.i], of_pairs).index_add(0, self.index, own)
        return COULOMB * energies  # but for the background of a net charge, which has no forces


def _pairs(x, cell, cutoff):
    """Indices of each pair once, [m, 2], and the image that the difference is moved by, [m, 3]."""
    images = [int(np.ceil(cutoff * n)) for n in np.linalg.norm(np.linalg.inv(cell), axis=0)]
    grid = np.stack(np.meshgrid(*[np.arange(-m, m + 1) for m in images], indexing="ij"), -1).reshape(-1, 3)
    found, shifts = [], []
    for i in range(len(x)):
        d = x[i] - x[i:, None] + grid @ cell
        near = (d**2).sum(-1) < cutoff**2
        # of a particle and its own images a half
        near[0] &= [tuple(g) > (0, 0, 0) for g in grid]
        j, image = np.nonzero(near)
        found.append(np.stack((np.full(len(j), i), i + j), 1))
        shifts.append(grid[image])
    return np.concatenate(found), np.concatenate(shifts)


def _waves(cell, longest):
    """A half of the waves within a cut-off, [m, 3]."""
    most = [int(longest * n / (2 * np.pi)) for n in np.linalg.norm(cell, axis=1)]
    grid = np.stack(np.meshgrid(*[np.arange(-m, m + 1) for m in most], indexing="ij"), -1).reshape(-1, 3)
    grid = grid[[tuple(g) > (0, 0, 0) for g in grid]]
    k = 2 * np.pi * grid @ np.linalg.inv(cell).T
    return k[(k**2).sum(1) < longest**2]


def step(energies_of, x, q, parameters, target):
    """The gradients of a loss on forces."""
    x = x.detach().requires_grad_()
    charges = parameters[0] * q + parameters[1] * q**3
    (gradient,) = torch.autograd.grad(energies_of(x, charges).sum(), x, create_graph=True)
    loss = ((gradient + target) ** 2).mean()
    return torch.autograd.grad(loss, (parameters, x))


def seconds(call, device):
    clock = clock_of(device)
    begin = clock()
    value = call()
    if device == "gpu":
        torch.cuda.synchronize()
    return clock() - begin, value


def measure(atoms, accuracy, dtype, total, repeats, device):
    place, threads = ("cuda", None) if device == "gpu" else ("cpu", 1)
    random = np.random.default_rng(atoms)
    count = max(1, total // atoms)
    x, q, offsets, cells = systems(count, atoms, random)
    q -= np.repeat(q.reshape(count, atoms).mean(1), atoms)
    index = np.repeat(np.arange(count), atoms)
    x, q, target = (torch.as_tensor(a).to(place, dtype) for a in (x, q, random.normal(size=(len(x), 3))))
    boxes = torch.as_tensor(cells).to(place)
    parameters = torch.tensor([1.0, 0.0], dtype=dtype, device=place, requires_grad=True)
    module, ptr = CoulombBatch(accuracy=accuracy, threads=threads, device=device), torch.as_tensor(offsets)
    kinds = {"batch": lambda x, q: module(x, q, boxes, ptr=ptr)}
    # near the optimum of the batch; operations of PyTorch cost otherwise
    for factor in (0.7, 1.0, 1.4):
        splitting = factor * 7.0 * (100 / atoms) ** (1 / 6)
        kinds[f"plain {splitting:.1f}"] = PlainEwald(x.cpu().numpy(), cells, index, splitting, accuracy).to(place)
    times, gradients = {name: [] for name in kinds}, {}
    for _ in range(repeats):
        for name, kind in kinds.items():
            took, gradients[name] = seconds(lambda kind=kind: step(kind, x, q, parameters, target), device)
            times[name].append(took)
    rates = {name: len(x) / min(taken) for name, taken in times.items()}
    plain = max((name for name in kinds if name != "batch"), key=rates.get)
    difference = (gradients["batch"][1] - gradients[plain][1]).norm() / gradients[plain][1].norm()
    return {
        "atoms": atoms,
        "dtype": str(dtype).split(".")[1],
        "device": device,
        "accuracy": accuracy,
        "systems": count,
        "batch_atoms_per_second": round(rates["batch"]),
        "plain_atoms_per_second": round(rates[plain]),
        "plain_splitting": float(plain.split()[1]),
        "difference": float(difference),
    }


def line(case):
    own, plain = (case[f"{name}_atoms_per_second"] for name in ("batch", "plain"))
    return (
        f"{case['atoms']:5d} atoms, {case['dtype']}, atoms/s: batch {own:.3g}, plain {plain:.3g} with splitting "
        f"{case['plain_splitting']}; batch/plain {own / plain:.1f}, difference {case['difference']:.1e}"
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(measure, (torch.float32, torch.float64), 4000, __doc__, line)
