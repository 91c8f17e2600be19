#!/usr/bin/env python3
"""Verifies a bundle of `reprise prove`, written from docs/proof.md alone. Needs python3-cryptography, and openssl for time stamps.

verify_proof.py BUNDLE [--signed-by KEY] [--timestamp-ca FILE]: exit status 0 if it is intact, else 1.
"""
import argparse
import calendar
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

STATEMENT = {"type": str, "version": int, "leaves": int, "root": str, "key": str, "made_at": str, "program": str}
MOST_DEPTH = 64


class Broken(Exception):
    """What is wrong with a bundle."""


def members(pairs):
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Broken("a member is there twice")
    return made


def constant(name):
    raise Broken(f"{name} is not JSON")


def parse(text):
    depth = deepest = 0
    for character in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0)
        deepest = max(deepest, depth)
    if deepest > MOST_DEPTH:
        raise Broken("it is too deep")
    try:
        return json.loads(text, object_pairs_hook=members, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is not JSON: {error}") from None


def hexadecimal(value, size=None):
    """The bytes of lower-case digits; `size` in bytes."""
    if not isinstance(value, str) or not re.fullmatch(r"([0-9a-f]{2})+", value) or (size and len(value) != 2 * size):
        raise Broken(f"{str(value)[:80]!r} is not hexadecimal digits of {size or 'some'} bytes")
    return bytes.fromhex(value)


def octets(text, what):
    try:
        return text.encode()
    except (UnicodeEncodeError, AttributeError):
        raise Broken(f"{what} is no text") from None


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def hash_of(number, leaf):
    if not isinstance(leaf, dict) or set(leaf) not in ({"hash"}, {"hash", "salt", "text"}):
        raise Broken(f"leaf {number} has not the members of one")
    digest = hexadecimal(leaf["hash"], 32)
    if "salt" in leaf and sha256(b"\0", hexadecimal(leaf["salt"], 32), octets(leaf["text"], f"leaf {number}")) != digest:
        raise Broken(f"leaf {number} was changed")
    return digest


def root_of(hashes):
    if len(hashes) == 1:
        return hashes[0]
    left = 1 << (len(hashes) - 1).bit_length() - 1
    return sha256(b"\1", root_of(hashes[:left]), root_of(hashes[left:]))


def verify(text, signed_by=None):
    """The statement of a bundle, given as text. Broken if anything in it is not what was signed."""
    bundle = parse(text)
    if not isinstance(bundle, dict) or set(bundle) - {"time_stamp"} != {"statement", "signature", "leaves"}:
        raise Broken("it has not the members of a bundle")
    if "time_stamp" in bundle:
        hexadecimal(bundle["time_stamp"])
    if not isinstance(bundle["leaves"], list) or not bundle["leaves"]:
        raise Broken("it has no leaves")
    signed = octets(bundle["statement"], "the statement")
    statement = parse(bundle["statement"])
    if not isinstance(statement, dict) or {name: type(value) for name, value in statement.items()} != STATEMENT or \
            statement["type"] != "reprise-proof" or statement["version"] != 1:
        raise Broken("its statement is not one of version 1")
    octets(statement["made_at"] + statement["program"], "its statement")
    key = hexadecimal(statement["key"], 32)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(hexadecimal(bundle["signature"], 64), b"reprise-proof-1\n" + signed)
    except (InvalidSignature, ValueError):
        raise Broken("its signature is not that of the statement") from None
    if signed_by not in (None, key.hex(), "sha256:" + sha256(key).hex()):
        raise Broken("another key has signed it")
    hashes = [hash_of(number, leaf) for number, leaf in enumerate(bundle["leaves"], 1)]
    if len(hashes) != statement["leaves"]:
        raise Broken("there are more or fewer leaves than were signed")
    if root_of(hashes) != hexadecimal(statement["root"], 32):
        raise Broken("its leaves are not those that were signed")
    return statement


def check_stamp(bundle, authority):
    """What openssl says of the time stamp; it is one of the signature's bytes."""
    if "time_stamp" not in bundle:
        raise Broken("it has no time stamp")
    with tempfile.NamedTemporaryFile() as reply:
        reply.write(bytes.fromhex(bundle["time_stamp"]))
        reply.flush()
        digest = sha256(bytes.fromhex(bundle["signature"])).hex()
        shown = subprocess.run(["openssl", "ts", "-reply", "-in", reply.name, "-text"], capture_output=True, text=True, errors="replace", check=False).stdout
        times = re.findall(r"^Time stamp: (\w{3} +\d+ [\d:]{8})(?:\.\d+)? (\d{4}) GMT$", shown, re.M)
        if not times:
            raise Broken("its time stamp has no time")
        at = calendar.timegm(time.strptime(" ".join(times[-1]), "%b %d %H:%M:%S %Y"))
        command = ["openssl", "ts", "-verify", "-digest", digest, "-in", reply.name, "-CAfile", authority, "-attime", str(at)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            raise Broken("its time stamp is not of this bundle, or not by that authority")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("--signed-by")
    parser.add_argument("--timestamp-ca")
    given = parser.parse_args()
    try:
        with open(given.bundle, encoding="utf-8", newline="") as file:
            text = file.read()
        statement = verify(text, given.signed_by)
        if given.timestamp_ca:
            check_stamp(parse(text), given.timestamp_ca)
    except (Broken, OSError, UnicodeDecodeError) as problem:
        sys.exit(f"NOT intact: {problem}")
    left_out = sum("salt" not in leaf for leaf in parse(text)["leaves"])
    print(f"intact: {statement['leaves']} leaves, {left_out} of them left out; signed by sha256:{sha256(bytes.fromhex(statement['key'])).hex()}")


if __name__ == "__main__":
    main()
