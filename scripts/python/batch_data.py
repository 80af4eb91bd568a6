# SPDX-License-Identifier: BSD-3-Clause
"""Batch systems (scripts/batch/*.json) and machines (scripts/machines/*.json): read and checked. Python 3.6, no packages."""
import difflib
import json
import pathlib
import re

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
# What {a name} in a directive, a launcher or a command stands for; submit.py gives the values.
VALUES = ("job", "nodes", "ranks", "ranks per node", "cores", "all cores", "cores per rank", "devices", "time", "minutes",
          "seconds", "margin", "log", "script", "queue", "account")
PLACEHOLDER = re.compile(r"(?<!\$)\{([^{}]*)\}")


class BadInput(Exception):
    """A file, key or value that is refused, with what is accepted."""


def quoted(names):
    return ", ".join('"{}"'.format(n) for n in names)


def is_text(value):
    return isinstance(value, str) and value != "" and "\n" not in value


def is_count(least):
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_line(value):
    """A text, or alternatives: the first one whose values are all given counts."""
    return is_text(value) or (isinstance(value, list) and value != [] and all(is_text(v) for v in value))


def is_list(of):
    return lambda value: isinstance(value, list) and all(of(v) for v in value)


def is_date(value):
    return isinstance(value, str) and (value == "never run" or re.match(r"20\d\d-\d\d-\d\d(, .+)?$", value) is not None)


def is_word(*words):
    return lambda value: value in words


def is_environment(value):
    return isinstance(value, dict) and all(re.match(r"[A-Za-z_][A-Za-z0-9_]*$", k) and isinstance(v, str) and "\n" not in v
                                           for k, v in value.items())


TEXT = (is_text, "a text of one line")
TEXT_OR_NULL = (lambda v: v is None or is_text(v), "a text of one line, or null")
LINE = (is_line, "a text of one line, or a list of them of which the first with all its values given counts")
DATE = (is_date, '"never run", or the date as 2026-11-30, after ", " with what it was run on')
SYSTEM_KEYS = {
    "what": TEXT,
    "last run": DATE,
    "prefix": TEXT,
    "directives": (is_list(is_line), "a list of texts, each of which can be a list of alternatives"),
    "submit": (lambda v: is_list(is_text)(v) and v != [], "a list of words, the command that submits"),
    "script on standard input": (lambda v: isinstance(v, bool), "true or false"),
    "launcher": LINE,
    "stop": (is_word("signal", "time limit"), '"signal" (a directive sends it {margin} seconds before the limit) or '
                                              '"time limit" (the program is told its time)'),
    "log": (is_word("batch system", "script"), '"batch system" (it appends to {log}) or "script" (the job does)'),
    "queue again": (TEXT_OR_NULL[0], "the command that a job gives where it stopped and can go on, or null where exit code "
                                     "75 itself does it"),
}
MACHINE_KEYS = {
    "what": TEXT,
    "last run": DATE,
    "nodes": (is_count(1), "a whole number of at least 1: the most nodes of a job"),
    "cores": (is_count(1), "a whole number of at least 1: cores of a node"),
    "devices": (is_count(0), "a whole number: GPUs of a node, 0 for none"),
    "modules": (is_list(is_text), "a list of lines of the shell, as \"module load OpenMPI\""),
    "environment": (is_environment, "an object of variables and their texts"),
    "launcher": (lambda v: v is None or is_line(v), "null for the batch system's own, or " + LINE[1]),
    "directives": (lambda v: isinstance(v, dict) and all(is_list(is_text)(lines) for lines in v.values()),
                   "an object: for a batch system a list of directives of this machine"),
    "queue": TEXT_OR_NULL,
    "account": TEXT_OR_NULL,
    "filesystem": (lambda v: isinstance(v, dict), 'an object with "runs" and "scratch"'),
}
FILESYSTEM_KEYS = {
    "runs": (is_text, "a folder that all nodes see; relative to the current folder, or with ${VARIABLES}"),
    "scratch": (TEXT_OR_NULL[0], "a folder on a disk of each node, as \"${TMPDIR}\", or null"),
}


def names_in(kind):
    """What lies in scripts/batch or scripts/machines."""
    return sorted(p.stem for p in (SCRIPTS / kind).glob("*.json"))


def find(kind, name):
    """The file that NAME or a path stands for."""
    if name in names_in(kind):
        return SCRIPTS / kind / (name + ".json")
    path = pathlib.Path(name)
    if path.suffix == ".json":
        return path
    what = {"batch": "batch system", "machines": "machine"}[kind]
    raise BadInput('unknown {} "{}"; accepted: {}, or a file that ends in .json'.format(what, name, ", ".join(names_in(kind))))


def read_object(path):
    def without_duplicates(pairs):
        keys = [k for k, _ in pairs]
        for key in keys:
            if keys.count(key) > 1:
                raise BadInput('{}: the key "{}" stands there twice; accepted: once'.format(path, key))
        return dict(pairs)

    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=without_duplicates)
    except OSError as error:
        raise BadInput("{}: {}".format(path, error.strerror))
    except ValueError as error:
        raise BadInput("{}: {}; accepted: a JSON object".format(path, error))
    if not isinstance(value, dict):
        raise BadInput("{}: accepted: a JSON object".format(path))
    return value


def check_keys(where, value, keys):
    for key in value:
        if key not in keys:
            near = difflib.get_close_matches(key, list(keys), 1)
            raise BadInput('{}: unknown key "{}"{}; accepted: {}'.format(
                where, key, ', did you mean "{}"?'.format(near[0]) if near else "", quoted(keys)))
    for key, (accepts, accepted) in keys.items():
        if key not in value:
            raise BadInput('{}: the key "{}" is missing; accepted: {}'.format(where, key, accepted))
        if not accepts(value[key]):
            raise BadInput("{}: {}: {}; accepted: {}".format(where, key, json.dumps(value[key]), accepted))


def check_placeholders(where, key, text):
    for name in PLACEHOLDER.findall(text):
        if name not in VALUES:
            raise BadInput("{}: {}: {{{}}} in \"{}\"; accepted: {}".format(
                where, key, name, text, ", ".join("{" + v + "}" for v in VALUES)))


def texts(value):
    """All texts in a value of lines and alternatives."""
    if isinstance(value, str):
        return [value]
    return [t for v in value or [] for t in texts(v)]


def read_system(name):
    path = find("batch", name)
    system = read_object(path)
    check_keys(path, system, SYSTEM_KEYS)
    for key in ("directives", "submit", "launcher", "queue again"):
        for text in texts(system[key]):
            check_placeholders(path, key, text)
    if system["stop"] == "signal" and not any("{margin}" in t for t in texts(system["directives"])):
        raise BadInput('{}: stop: "signal", and no directive sends it; accepted: a directive with {{margin}}, or "time limit"'
                       .format(path))
    return dict(system, name=path.stem)


def read_machine(name):
    path = find("machines", name)
    machine = read_object(path)
    check_keys(path, machine, MACHINE_KEYS)
    check_keys("{}: filesystem".format(path), machine["filesystem"], FILESYSTEM_KEYS)
    for system in machine["directives"]:
        if system not in names_in("batch"):
            raise BadInput('{}: directives: "{}"; accepted: {}'.format(path, system, quoted(names_in("batch"))))
    for key, value in [("launcher", machine["launcher"])] + sorted(machine["directives"].items()):
        for text in texts(value):
            check_placeholders(path, key, text)
    return dict(machine, name=path.stem)


def fill(line, values):
    """The line with its values, of alternatives the first that has them all; None where a value is not given."""
    for text in [line] if isinstance(line, str) else line:
        if all(values[name] is not None for name in PLACEHOLDER.findall(text)):
            return PLACEHOLDER.sub(lambda m: str(values[m.group(1)]), text)
    return None
