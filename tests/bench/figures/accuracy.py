# SPDX-License-Identifier: LGPL-2.1-or-later
"""farfield_gpu_benchmark accuracy: errors against double-precision PME or the CPU."""

from tests.bench.figures.cases import markdown, setting


def table(cases):
    rows = [
        [
            case["system"],
            case["backend"],
            case["precision"],
            case["engine"],
            "default" if case["wanted_order"] < 0 else case["wanted_order"],
            "yes" if case["least_squares"] else "no",
            f"{setting(case)}, {case['setup']['engine']}",
            f"{case['force_error']:.2e}",
            f"{case['energy_error_per_atom']:.1e}",
            f"{case['virial_error_per_atom']:.1e}",
            case["relative_to"],
        ]
        for case in cases
    ]
    if rows:
        yield (
            "Errors; energy and virial in kJ/mol per atom",
            markdown(
                [
                    *(
                        "system",
                        "backend",
                        "precision",
                        "engine",
                        "order",
                        "least squares",
                        "setting",
                    ),
                    *("force", "energy", "virial", "force relative to"),
                ],
                rows,
            ),
        )
