"""Checks tables of demands on the product and the tests that show them: each row needs tests, and the tests must exist."""
import ast
import pathlib

TESTS = pathlib.Path(__file__).resolve().parents[1]


class Left:
    """A demand that is deliberately not met, and the reason."""

    def __init__(self, reason):
        self.reason = reason


def at(file, *names):
    return [f"{file}::{name}" for name in names]


def names_in(file):
    """Names of the tests in a file, without those that are always skipped."""
    tree = ast.parse((TESTS / file).read_text())
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
            and not any("mark.skip" == ast.unparse(mark).removeprefix("pytest.").split("(")[0] for mark in each.decorator_list)}


def wanting(rows):
    """Rows (a demand, and tests or a Left) without a test, and tests that do not exist."""
    known = {}
    missing = []
    for demand, shown in rows:
        if isinstance(shown, Left):
            missing += [] if len(shown.reason) > 40 else [f"{demand}: left out without a reason"]
        else:
            missing += [] if shown else [f"{demand}: nothing shows it"]
            for one in shown:
                file, name = one.split("::")
                if file not in known:
                    known[file] = names_in(file)
                missing += [] if name in known[file] else [f"{demand}: there is no {one}"]
    return missing
