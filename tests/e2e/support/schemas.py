"""Checks JSON that the server sends and stores against schemas/*.schema.json."""
import functools
import json
import pathlib

import fastjsonschema
import jsonschema

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "schemas"


@functools.lru_cache(None)
def load(name):
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text())


def _schema(name, definition):
    schema = load(name)
    return {"$schema": schema["$schema"], "$ref": f"#/definitions/{definition}", "definitions": schema["definitions"]} if definition else schema


TYPES = {bool: "boolean", int: "integer", str: "string"}


def _typed(schema):
    """`schema` with a type beside each constant, because the compiled code takes True for 1."""
    if isinstance(schema, list):
        return [_typed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return ({"type": TYPES[type(schema["const"])]} if "const" in schema else {}) | {key: _typed(value) for key, value in schema.items()}


@functools.lru_cache(None)
def _compiled(name, definition):
    return fastjsonschema.compile(_typed(_schema(name, definition)), use_default=False)


@functools.lru_cache(None)
def _validator(name, definition):
    jsonschema.Draft7Validator.check_schema(_schema(name, definition))
    return jsonschema.Draft7Validator(_schema(name, definition))


def check(name, value, definition=None):
    """Asserts that `value` satisfies schemas/<name>.schema.json, or one definition in it."""
    try:
        _compiled(name, definition)(value)
        return
    except fastjsonschema.JsonSchemaValueException:
        pass  # The other validator, which is far slower, finds all errors and names them.
    errors = [f"{list(e.absolute_path)}: {e.message[:300]}" for e in _validator(name, definition).iter_errors(value)]
    assert not errors, f"not as in schemas/{name}.schema.json: {errors[:3]}\n{json.dumps(value)[:2000]}"


def check_event(data):
    """Checks an event against the definition of its type, because errors of a oneOf over all types would be useless."""
    check("event", data, f"{data['type'].lower()}_event")
