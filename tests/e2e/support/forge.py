"""Servers as a developer has them: a git server, an npm registry and a Python index, each at an address of its own."""
import http.server
import json
import os
import subprocess
import tarfile
import threading
import zipfile


class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Served(http.server.ThreadingHTTPServer):
    def __init__(self, address, handler):
        super().__init__((address, 0), handler)
        self.host = f"{address}:{self.server_address[1]}"
        self.url = f"http://{self.host}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


def serve_git(folder, address):
    """Serves the bare repositories of a folder to everybody, for fetching and pushing."""

    class Git(Handler):
        def do_GET(self):
            path, _, query = self.path.partition("?")
            if self.headers.get("Transfer-Encoding") == "chunked":
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
            else:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            environment = {"GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query, "REQUEST_METHOD": self.command,
                           "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "me", "PATH": os.defpath,
                           "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""), "GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
            out = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=True).stdout
            head, _, content = out.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.reply(content, fields.get("Content-Type", "text/plain"), int(fields.get("Status", "200").split()[0]))

        do_POST = do_GET

    return Served(address, Git)


def serve_npm(folder, address, name, source):
    """Serves one package, `name`, whose index.js is `source`."""
    package = folder / "package"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": "1.0.0", "main": "index.js"}))
    (package / "index.js").write_text(source)
    with tarfile.open(folder / "package.tgz", "w:gz") as archive:
        archive.add(package, "package")

    class Npm(Handler):
        def do_GET(self):
            if self.path == f"/{name}":
                version = {"name": name, "version": "1.0.0", "dist": {"tarball": f"{self.server.url}/{name}/package.tgz"}}
                self.reply(json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode(), "application/json")
            elif self.path == f"/{name}/package.tgz":
                self.reply((folder / "package.tgz").read_bytes(), "application/octet-stream")
            else:
                self.reply(b"{}", "application/json", 404)

    return Served(address, Npm)


def serve_python(folder, address, name, source):
    """Serves one package, `name`, a wheel with the module `source`."""
    folder.mkdir(parents=True)
    wheel = f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        archive.writestr(f"{name}.py", source)
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")

    class Index(Handler):
        def do_GET(self):
            if self.path == f"/simple/{name}/":
                self.reply(f'<a href="/files/{wheel}">{wheel}</a>'.encode(), "text/html")
            elif self.path == f"/files/{wheel}":
                self.reply((folder / wheel).read_bytes(), "application/octet-stream")
            else:
                self.reply(b"no", "text/plain", 404)

    return Served(address, Index)
