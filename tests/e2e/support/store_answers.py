"""A program's answers about a store. Used to make the samples (tests/data/old_store/make) and to compare later programs with them."""
import hashlib
import json

KEPT = 100  # characters; longer texts are replaced by their digests


def shortened(value):
    """The same with long texts replaced by their length and digest."""
    if isinstance(value, dict):
        return {key: shortened(member) for key, member in value.items()}
    if isinstance(value, list):
        return [shortened(member) for member in value]
    if isinstance(value, str) and len(value) > KEPT:
        return f"({len(value)} characters, sha256:{hashlib.sha256(value.encode()).hexdigest()})"
    return value


def missing(actual, expected, place=""):
    """Where the answer differs from the expected one, or None. It may have more members, because later programs tell more."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key, member in expected.items():
            if key not in actual:
                return f"{place}/{key} is not there"
            if found := missing(actual[key], member, f"{place}/{key}"):
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list):
        if len(actual) != len(expected):
            return f"{place} has {len(actual)} entries, not {len(expected)}"
        return next((found for i, (a, e) in enumerate(zip(actual, expected)) if (found := missing(a, e, f"{place}/{i}"))), None)
    return None if actual == expected else f"{place} is {actual!r}, not {expected!r}"


def interactions_of(client, chat, ids):
    """The interactions by id, each with its events and whole state, or with its error."""
    return {one: client.get(f"/chats/{chat}/interactions/{one}").json for one in ids}


def replays_of(client, chat, ids):
    return {one: client.post(f"/chats/{chat}/interactions/{one}/replay", {"mode": "recorded"}).json for one in ids}


def exported(folder):
    """The interactions of an exported chat's folder by their ids, each with its whole state."""
    whole = {}
    for path in sorted(folder.glob("interactions/int_*.json"), key=lambda path: (len(path.name), path.name)):
        interaction = json.loads(path.read_text())
        state = interaction["final_agent_state"] or {}
        if link := state.pop("linked", None):
            state["messages"] = whole[interaction["parent_id"]]["final_agent_state"]["messages"][:link["kept"]] + state["messages"]
            assert len(state["messages"]) == link["messages"]
        whole[interaction["id"]] = interaction
    return whole
