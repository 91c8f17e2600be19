"""Checks JSON that the server sends and stores against schemas/*.schema.json."""
import functools
import json
import pathlib

import jsonschema

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "schemas"


@functools.lru_cache(None)
def load(name):
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


@functools.lru_cache(None)
def _validator(name, definition):
    schema = load(name)
    if definition:
        schema = {"$ref": f"#/definitions/{definition}", "definitions": schema["definitions"]}
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def check(name, value, definition=None):
    """Asserts that `value` satisfies schemas/<name>.schema.json, or one definition in it."""
    errors = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in _validator(name, definition).iter_errors(value)]
    assert not errors, f"not as in schemas/{name}.schema.json: {errors[:3]}\n{json.dumps(value)[:2000]}"


def check_event(data):
    """Checks an event against the definition of its type, because errors of a oneOf over all types would be useless."""
    check("event", data, f"{data['type'].lower()}_event")
