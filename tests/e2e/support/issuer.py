"""A scripted OIDC issuer on loopback: a discovery document, its keys, and tokens that it signs. Python's `cryptography` signs, so
that the server checks the output of an independent program."""
import base64
import hashlib
import hmac
import http.server
import json
import threading
import time

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, size=None):
    return encode(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


class Key:
    """A private key for one of the algorithms, with the id `kid`."""

    def __init__(self, algorithm, kid, bits=2048):
        self.algorithm, self.kid = algorithm, kid
        if algorithm == "RS256":
            self.private = rsa.generate_private_key(65537, bits)
        elif algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = ed25519.Ed25519PrivateKey.generate()

    def jwk(self):
        public = self.private.public_key()
        if self.algorithm == "EdDSA":
            raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
            return {"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": encode(raw)}
        numbers = public.public_numbers()
        if self.algorithm == "RS256":
            return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid, "n": number(numbers.n), "e": number(numbers.e)}
        return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": number(numbers.x, 32), "y": number(numbers.y, 32)}

    def pem(self):
        return self.private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def sign(self, message):
        if self.algorithm == "RS256":
            return self.private.sign(message, padding.PKCS1v15(), hashes.SHA256())
        if self.algorithm == "ES256":
            r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
        return self.private.sign(message)


def assemble(header, claims, sign):
    message = (encode(json.dumps(header).encode()) + "." + encode(json.dumps(claims).encode())).encode()
    return message.decode() + "." + encode(sign(message))


def shared_secret(secret):
    """Signs as in HS256, with a key known to both sides. An attacker could use the issuer's public key as such."""
    return lambda message: hmac.new(secret, message, hashlib.sha256).digest()


class Issuer:
    """`keys` are the published keys; `fetched` counts the fetches. While `down`, it answers 503; while `silent` is
    cleared, it does not answer."""

    def __init__(self):
        self.keys = [Key("RS256", "rsa-1"), Key("ES256", "ec-1"), Key("EdDSA", "ed-1")]
        self.fetched = 0
        self.down = False
        self.talks = threading.Event()
        self.talks.set()
        self.asked = threading.Event()
        issuer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                issuer.asked.set()
                issuer.talks.wait()
                issuer.answer(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/realms/test"
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)
        self.thread.start()

    def answer(self, handler):
        documents = {"/realms/test/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": self.url + "/keys"},
                     "/realms/test/keys": {"keys": [key.jwk() for key in self.keys]}}
        document = documents.get(handler.path)
        self.fetched += handler.path == "/realms/test/keys"
        body = json.dumps(document).encode()
        handler.send_response(503 if self.down else 200 if document else 404)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def claims(self, **changes):
        claims = {"iss": self.url, "aud": "reprise", "sub": "alice", "org": "acme", "iat": int(time.time()), "exp": int(time.time()) + 600}
        claims.update(changes)
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key=None, header=None, **changes):
        """An access token; a claim that is None is left out."""
        key = key or self.keys[0]
        return assemble({"alg": key.algorithm, "kid": key.kid, "typ": "at+jwt", **(header or {})}, self.claims(**changes), key.sign)

    def config(self, **more):
        return {"auth": {"type": "oidc", "issuer": self.url, "audience": "reprise", "org_claim": "org", "roles_claim": "roles",
                         "admin_role": "boss", **more}}

    def close(self):
        self.talks.set()
        self.http.shutdown()
        self.http.server_close()
