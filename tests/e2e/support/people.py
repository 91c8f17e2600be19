"""Users of a server for several people: API tokens made by the program itself, and the operator's token."""
import hashlib
import json
import secrets
import subprocess

from .client import Client
from .server import BINARY
from .timing import SLACK

OPERATOR = "the-operators-own-token"


def token_file(home):
    file = home.path / "token"
    file.write_text(OPERATOR + "\n")
    file.chmod(0o600)
    return file


def users(home, *arguments, status=0):
    """Runs `reprise users token ...` for a server that was started in this home."""
    done = subprocess.run([str(BINARY), "users", "token", *map(str, arguments), "--config", str(home.path / "server.json"), "--data-dir", str(home.data)],
                          env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SLACK, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def api_token(home, user="alice", *arguments):
    return json.loads(users(home, "add", user, "--json", *arguments).stdout)


def as_user(server, token):
    return Client(server.port, token)


def many_tokens(home, count):
    """Writes tokens of user-0, user-1, ... into the file in its documented form, because the program would have to be started a hundred times for them."""
    tokens = ["reprise_" + secrets.token_urlsafe(32) for _ in range(count)]
    sha256 = lambda text: hashlib.sha256(text.encode()).hexdigest()  # noqa: E731
    file = home.config / "reprise" / "tokens.json"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(json.dumps({"schema": 1, "tokens": [
        {"id": f"token_{number:012x}", "name": "", "org": "acme", "user": f"user-{number}", "role": "user", "digest": "sha256:" + sha256(token),
         "cookie_digest": "sha256:" + sha256(token), "created_at": "2026-01-01T00:00:00.000Z", "expires_at": None}
        for number, token in enumerate(tokens)]}))
    file.chmod(0o600)
    return tokens
