"""Classes with one job: a limit on methods and fields, and one .cpp file for each class of the simulator.

A struct of data may have more fields than a class with behaviour.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

from tidy_checks import cpp, ratchet
from tidy_checks.tree import Rules, Tree, is_test, within


def check(tree: Tree, rules: Rules) -> list[str]:
    return _sizes(tree, rules["classes"]) + _files(tree, rules["classes"])


def _looked_at(tree: Tree, rules: Rules, *suffixes: str) -> list[PurePosixPath]:
    return [path for path in tree.having(*suffixes) if within(path, rules["folders"]) and not is_test(path)]


def _sizes(tree: Tree, rules: Rules) -> list[str]:
    methods: dict[str, int] = {}
    fields: dict[str, int] = {}
    data: dict[str, int] = {}
    for path in _looked_at(tree, rules, ".hpp", ".cpp", ".h"):
        for found in cpp.classes(tree.text(path)):
            name = f"{path}: {found.name}"
            methods[name] = found.methods
            (data if found.is_data else fields)[name] = found.fields
    exceptions = rules.get("exceptions", {})
    return (
        ratchet.over(methods, most=rules["methods"], exceptions=exceptions.get("methods", {}), what="methods")
        + ratchet.over(fields, most=rules["fields"], exceptions=exceptions.get("fields", {}), what="fields")
        + ratchet.over(data, most=rules["data"], exceptions=exceptions.get("data", {}), what="fields of a struct")
    )


def _files(tree: Tree, rules: Rules) -> list[str]:
    """By folder and class: the files that define its functions. A class is of the folder that declares it."""
    declared: dict[str, set[str]] = defaultdict(set)
    for path in _looked_at(tree, rules, ".hpp", ".cpp", ".h"):
        for found in cpp.classes(tree.text(path)):
            declared[found.name.split("::")[-1]].add(str(path.parent))
    homes: dict[str, set[str]] = defaultdict(set)
    findings = []
    for path in _looked_at(tree, rules, ".cpp", ".inc"):
        if "tests" in path.parts:
            continue  # a fake that is linked in a class's place
        for function in cpp.functions(tree.text(path)):
            if "::" not in function.name:
                continue
            owners = function.name.split("::")[:-1]
            name, folder = next((word for word in owners if word in declared), owners[0]), str(path.parent)
            if name in declared and folder not in declared[name]:
                findings.append(
                    f"{path}:{function.line}: defines {function.name}, of {', '.join(sorted(declared[name]))}"
                )
            homes[f"{folder}: {name}"].add(path.name)
    counts = {name: len(files) for name, files in homes.items()}
    exceptions = rules.get("exceptions", {}).get("files", {})
    return sorted(set(findings)) + ratchet.over(counts, most=1, exceptions=exceptions, what=".cpp files that define it")
