"""The harness itself: a check that cannot fail proves nothing."""
import collections
import json
import pathlib

import pytest
from support import schemas
from support.client import SseParser
from support.provider import call, ill_formed

USER = {"role": "user", "content": "q"}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "r"}


def asks(*ids):
    return {"role": "assistant", "content": None, "tool_calls": [call("echo", {}, i) for i in ids]}


@pytest.mark.parametrize("messages", [
    [USER, asks("a"), RESULT], [USER, {"role": "assistant", "content": "x"}, USER], [USER, asks("a", "b"), RESULT, {**RESULT, "tool_call_id": "b"}]])
def test_well_formed_histories_pass(messages):
    assert ill_formed(messages) is None


@pytest.mark.parametrize("messages", [
    [USER, asks("a")], [USER, asks("a"), USER], [USER, asks("a"), RESULT, RESULT], [USER, RESULT], [USER, asks("a", "b"), RESULT, USER],
    [USER, asks("a", "a"), RESULT, RESULT], [USER, {"role": "assistant", "content": None}], [{"role": "user", "content": ""}],
    [USER, asks("a"), {**RESULT, "content": None}], [USER, {"role": "robot", "content": "x"}], [USER, asks(""), {**RESULT, "tool_call_id": ""}]])
def test_ill_formed_histories_are_found(messages):
    assert ill_formed(messages)


def test_the_parser_takes_events_in_any_pieces():
    wire = b": keep-alive\n\nid: 1\nevent: answer\ndata: {\"type\":\"ANSWER\"}\n\n"
    for size in range(1, len(wire)):
        parser = SseParser()
        events = [e for i in range(0, len(wire), size) for e in parser.feed(wire[i:i + size])]
        assert [(e.name, e.seq, e.data) for e in events] == [("answer", 1, {"type": "ANSWER"})] and len(parser.comments) == 1


@pytest.mark.parametrize("wire", [b"retry: 1\n\n", b"event: x\ndata: {}\ndata: {}\n\n", b"event: x\n\n", b"data: {}\n\n", b"event: x\ndata: {\n\n"])
def test_the_parser_is_strict(wire):
    with pytest.raises((AssertionError, json.JSONDecodeError)):
        SseParser().feed(wire)


def test_the_schemas_refuse_what_is_not_in_them():
    event = {"type": "ANSWER", "seq": 1, "round_index": 0, "at": "2026-01-01T00:00:00.000Z", "content": "x"}
    schemas.check_event(event)
    for wrong in ({**event, "extra": 1}, {**event, "seq": 0}, {**event, "at": "now"}, {k: v for k, v in event.items() if k != "content"}):
        with pytest.raises(AssertionError):
            schemas.check_event(wrong)


def test_no_two_modules_of_tests_have_one_name():
    """pytest imports them by it, so that one of the two would hide the other when both are run."""
    names = collections.Counter(file.name for file in pathlib.Path(__file__).parents[1].rglob("test_*.py"))
    assert names and not [name for name, count in names.items() if count > 1]
