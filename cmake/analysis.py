# farfield: a fast multipole method for molecular dynamics.
#
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs clang-tidy over sources as build folders of ninja compile them.

A source without findings is remembered by what the preprocessor makes of it, and not analysed again before that, its
options or the checks change.
"""

import argparse
import hashlib
import json
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def commands(folder, pattern):
    """{source: (compiler, options)} of the sources whose paths match."""
    found = {}
    database = subprocess.run(["ninja", "-C", folder, "-t", "compdb"], capture_output=True, text=True, check=True)
    for entry in json.loads(database.stdout):
        words = shlex.split(entry["command"])
        if "-c" in words and entry["file"].endswith(".cpp") and re.search(pattern, entry["file"]):
            words = [word for word in words if not word.endswith("ccache")]
            # Neither the source, nor the object and the list of what it depends on
            with_value = {"-o", "-c", "-MT", "-MF"}
            options = [
                word
                for before, word in zip(["", *words], words)
                if before not in with_value and word not in with_value and word != "-MD"
            ]
            found[entry["file"]] = (options[0], options[1:])
    return found


class Analysis:
    def __init__(self, given):
        self.given = given
        version = subprocess.run([given.tidy, "--version"], capture_output=True, check=True).stdout
        self.rules = given.checks.read_bytes() + version

    def key(self, folder, source, compiler, options, headers):
        """Comments count, since they can silence a check; where files and lines are does not."""
        command = [compiler, *options, "-E", "-P", "-CC", source]
        text = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
        own = " ".join(word for word in [*options, headers] if not word.startswith(("-I", "/")))
        return hashlib.sha256(b"\0".join((self.rules, own.encode(), text))).hexdigest()

    def findings(self, folder, source, compiler, options, headers):
        """What clang-tidy says of a source; nothing if it has no findings."""
        try:
            stamp = self.given.remembered / self.key(folder, source, compiler, options, headers)
        except subprocess.CalledProcessError as error:
            return error.stderr.decode()
        if not stamp.exists():
            words = [self.given.tidy, "--quiet", f"--config-file={self.given.checks}", f"--header-filter={headers}"]
            # Some options of gcc are others in clang
            flags = [*options, "-isystem", self.given.headers, "-Qunused-arguments", "-Wno-unknown-warning-option"]
            words += [source, "--", *flags]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return done.stdout + re.sub(r"^\d+ warnings? generated\.\n", "", done.stderr, flags=re.MULTILINE)
        stamp.touch()
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tidy", required=True, help="the program")
    parser.add_argument("--checks", type=Path, required=True, help="its configuration")
    parser.add_argument("--headers", required=True, help="folder of headers that clang-tidy lacks")
    parser.add_argument("--remembered", type=Path, required=True, help="folder for marks of sources without findings")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--build",
        nargs=3,
        action="append",
        metavar=("FOLDER", "SOURCES", "HEADERS"),
        help="a build folder; which of its sources, and which of their headers: regular expressions",
    )
    given = parser.parse_args()
    given.remembered.mkdir(parents=True, exist_ok=True)
    analysis = Analysis(given)
    tasks = [
        (folder, source, *command, headers)
        for folder, sources, headers in given.build
        for source, command in commands(folder, sources).items()
    ]
    found = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for text in pool.map(lambda task: analysis.findings(*task), tasks):
            found += bool(text)
            print(text, end="", flush=True)
    print(f"   {len(tasks)} sources, {found} with findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
