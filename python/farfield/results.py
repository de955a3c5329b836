# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files of results: JSON with one case a line, so that a case can be found, compared, and counted.

The file is an object. What all cases share stands one entry a line; the cases, in a list or by
name, follow one a line.
"""

import json
from pathlib import Path


def _lines(value):
    """An entry: cases one a line, anything else in one line."""
    if isinstance(value, list) and value and all(isinstance(case, dict) for case in value):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    if isinstance(value, dict) and value and all(isinstance(case, dict) for case in value.values()):
        cases = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in value.items())
        return "{\n" + ",\n".join(cases) + "\n}"
    return json.dumps(value)


def write(path, content):
    """Writes an object; what took hours is not lost for want of a folder."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    entries = (f"{json.dumps(name)}: {_lines(value)}" for name, value in content.items())
    Path(path).write_text("{\n" + ",\n".join(entries) + "\n}\n")
