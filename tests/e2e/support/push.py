"""A push service (RFC 8030) and a browser's subscription at it. What arrives is checked as a service does (RFC 8292), and read as a device does (RFC 8291)."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import queue
import threading
import time
import urllib.parse

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .timing import SOON


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point(key):
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def derive(salt, secret, purpose, size):
    first = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(first, purpose + b"\x01", hashlib.sha256).digest()[:size]


class Unreadable(Exception):
    pass


class Device:
    """A browser's subscription."""

    def __init__(self, endpoint, name="Test browser"):
        self.endpoint, self.name = endpoint, name
        self.key, self.auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)

    @property
    def id(self):
        return hashlib.sha256(self.endpoint.encode()).hexdigest()[:32]

    def body(self, **more):
        return {"endpoint": self.endpoint, "p256dh": encode(point(self.key.public_key())), "auth": encode(self.auth), "name": self.name, **more}

    def open(self, sealed):
        salt, size, length = sealed[:16], int.from_bytes(sealed[16:20], "big"), sealed[20]
        sender, text = sealed[21:21 + length], sealed[21 + length:]
        assert length == 65 and len(text) <= size <= 4096, "one record (RFC 8291, 4)"
        shared = self.key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        secret = derive(self.auth, shared, b"WebPush: info\0" + point(self.key.public_key()) + sender, 32)
        try:
            plain = AESGCM(derive(salt, secret, b"Content-Encoding: aes128gcm\0", 16)).decrypt(derive(salt, secret, b"Content-Encoding: nonce\0", 12), text, None)
        except InvalidTag:
            raise Unreadable from None
        message, mark, padding = plain.rpartition(b"\x02")
        assert mark and not padding.strip(b"\0")
        return json.loads(message)


class PushService:
    """Takes messages at /NAME. `status` has what it answers for a name, and `hangs` the names that get no answer."""

    def __init__(self):
        self.got, self.status, self.location, self.hangs, self.may = queue.Queue(), {}, None, set(), threading.Event()
        self.keys, self.arrived = {}, []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                name = self.path.lstrip("/")
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.arrived.append(name)
                if name in service.hangs:
                    service.may.wait()
                status = service.status.get(name, 201)
                fault = service.fault_in(name, self.headers)
                if fault:
                    status, service.fault = 403, fault
                self.send_response(status)
                if service.location:
                    self.send_header("Location", service.location)
                self.send_header("Content-Length", "0")
                self.end_headers()
                service.got.put((name, dict(self.headers), body))

            def log_message(self, *_):
                pass

        self.fault = None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def fault_in(self, name, headers):
        """What a push service would refuse. `keys` has the key with which a browser has subscribed."""
        scheme, _, rest = headers["Authorization"].partition(" ")
        parts = dict(each.strip().split("=", 1) for each in rest.split(","))
        head, claims, signature = parts["t"].split(".")
        signature, key = decode(signature), decode(parts["k"])
        if scheme != "vapid" or json.loads(decode(head)) != {"typ": "JWT", "alg": "ES256"}:
            return "form"
        if self.keys.get(name, key) != key:
            return "another server's key"
        made = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key).verify(made, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
        said = json.loads(decode(claims))
        if said["aud"] != self.url or not time.time() < said["exp"] < time.time() + 86_400 or urllib.parse.urlsplit(said["sub"]).scheme not in ("mailto", "https"):
            return f"claims {said}"
        if headers["Content-Encoding"] != "aes128gcm" or not headers["TTL"].isdigit() or headers["Urgency"] not in ("normal", "high"):
            return "headers"
        return None if len(headers["Topic"]) <= 32 and not set(headers["Topic"]) - set(encode(bytes(range(256))) + "-_") else "topic"

    def next(self):
        """The next message: the name, the headers and the sealed body."""
        message = self.got.get(timeout=SOON)
        assert not self.fault, self.fault
        return message

    def close(self):
        self.may.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
