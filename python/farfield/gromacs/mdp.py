# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run parameters (.mdp files)."""

import re
from pathlib import Path

FMM = {"coulombtype": "FMM", "fmm-backend": "farfield"}


def write(path, *groups):
    """Writes an .mdp file; later groups of settings override earlier ones."""
    merged = {}
    for group in groups:
        merged.update(group)
    Path(path).write_text("".join(f"{key:<28} = {value}\n" for key, value in merged.items()))


def read(path):
    """{name as written: value} of an .mdp file."""
    entries = {}
    for line in Path(path).read_text(errors="replace").splitlines():
        key, equals, value = line.split(";")[0].partition("=")
        if equals:
            entries[key.strip()] = value.strip()
    return entries


def normalised(key):
    """The form in which grompp compares names: case, '-' and '_' do not count."""
    return re.sub(r"[-_]", "", key).lower()


def value_of(entries, key):
    """The value of an entry, whatever spelling its name has; "" if there is none."""
    wanted = normalised(key)
    return next((v for k, v in entries.items() if normalised(k) == wanted), "")


def change(entries, changes):
    """Applies changes to entries, whatever spelling the names have."""
    wanted = {normalised(key) for key in changes}
    kept = {key: value for key, value in entries.items() if normalised(key) not in wanted}
    return {**kept, **changes}
