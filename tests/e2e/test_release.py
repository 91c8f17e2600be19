"""What scripts/release makes, from the present build: the archive (its bytes, its libraries, its licences), the list of parts, and that the
archive runs from a home folder, in the sandbox too. `scripts/release --check` tries it on a system that has nothing but glibc."""
import http.server
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tarfile
import threading

import pytest

from support.server import BINARY, ROOT, reprise, sandbox_works
from support.timing import SLACK, SOON

PACKAGING = ROOT / "scripts/package.d"
TIME = 1_700_000_000
# Of Debian's package libc6; the archive leaves them to the system.
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|anl|nss_\w+))\.so\.\d+")


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * SLACK, check=False,
                          env={**os.environ, **environment})
    assert done.returncode == 0, (command, done.stdout[-1500:], done.stderr[-1500:])
    return done.stdout


def make_archive(folder, umask="022"):
    return pathlib.Path(run("sh", "-c", 'umask $0; exec "$@"', umask, PACKAGING / "archive", folder, SOURCE_DATE_EPOCH=str(TIME)).strip())


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    if BINARY.resolve() != (ROOT / "build/release/reprise").resolve() or not (BINARY.parent / "cmake_install.cmake").exists():
        pytest.skip("the binary is not that of build/release")
    if not all(map(shutil.which, ("cmake", "dpkg-query", "ninja", "patchelf"))):
        pytest.skip("there is no patchelf, or nothing to build with")
    return make_archive(tmp_path_factory.mktemp("archive"))


def dynamic(program):
    return re.findall(r"\((\w+)\) +[^[]*\[([^]]+)\]", run("readelf", "-d", program))


@pytest.mark.limit(120)
def test_the_archive_has_every_library_and_licence_and_the_same_bytes_twice(archive, tmp_path):
    assert make_archive(tmp_path / "again", umask="077").read_bytes() == archive.read_bytes()
    assert archive.read_bytes()[3:4] == b"\0", "gzip's head has a name"
    with tarfile.open(archive) as tar:
        members = tar.getmembers()
        tar.extractall(tmp_path, filter="tar") if hasattr(tarfile, "tar_filter") else tar.extractall(tmp_path)
    names = [member.name for member in members]
    assert names == sorted(names, key=lambda name: name.split("/"))
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime, m.mode) for m in members} == {(0, 0, "root", "root", TIME, mode) for mode in (0o644, 0o755)}

    tree = tmp_path / names[0]
    assert {path.name for path in tree.iterdir()} == {"bin", "lib", "libexec", "share"}
    assert {path.name for path in (tree / "lib").iterdir()} == {"reprise"}, "in a folder of its own, since /usr/local/lib is everybody's"
    libraries = {path.name: path for path in (tree / "lib/reprise").iterdir()}
    programs = {tree / "bin/reprise": "$ORIGIN/../lib/reprise", tree / "libexec/reprise/reprise-document": "$ORIGIN/../../lib/reprise"}
    for file, path in {**programs, **dict.fromkeys(libraries.values())}.items():
        found = dynamic(file)
        # Not RUNPATH, which is not for what libraries load, and ends the search along the program's.
        assert [(kind, value) for kind, value in found if kind in ("RPATH", "RUNPATH")] == ([("RPATH", path)] if path else []), file
        for kind, value in found:
            assert kind != "NEEDED" or value in libraries or GLIBC.fullmatch(value), (file, value)
    assert not any(map(GLIBC.fullmatch, libraries))
    late = re.findall(r'"(lib\S+)"', (BINARY.parent / "generated/library_names.cc").read_text())
    assert len(late) == 7 and set(late) <= set(libraries)
    for program in programs:
        assert str(ROOT).encode() not in program.read_bytes(), f"{program} names the folder of the build"
    licences = tree / "share/doc/reprise/licences"
    for package, words in (("libcurl4", "curl"), ("node-react", "MIT"), ("nlohmann-json3-dev", "MIT"), ("libpq5", "PostgreSQL")):
        found = [path for path in licences.glob(package + "*/copyright")]
        assert found and words.lower() in found[0].read_text().lower(), package
    assert (licences / "common-licenses/LGPL-3").is_file()


@pytest.mark.limit(120)
def test_the_list_of_parts_names_each_library_and_what_is_compiled_in(archive, tmp_path):
    copy = shutil.copy(archive, tmp_path)
    run(PACKAGING / "parts.py", copy, SOURCE_DATE_EPOCH=str(TIME))
    listed = json.loads((tmp_path / (archive.name + ".spdx.json")).read_text())
    assert (listed["spdxVersion"], listed["dataLicense"], listed["creationInfo"]["created"]) == ("SPDX-2.3", "CC0-1.0", "2023-11-14T22:13:20Z")
    packages = {package["SPDXID"]: package for package in listed["packages"]}
    assert len(packages) == len(listed["packages"])
    assert all(re.fullmatch("SPDXRef-[A-Za-z0-9.-]+", name) for name in packages)
    whole = packages["SPDXRef-reprise"]
    assert whole["checksums"] == [{"algorithm": "SHA256", "checksumValue": run("sha256sum", archive).split()[0]}]
    relations = {relation["relatedSpdxElement"]: relation["relationshipType"] for relation in listed["relationships"]}
    assert set(relations) == set(packages) and relations["SPDXRef-reprise"] == "DESCRIBES"
    with tarfile.open(archive) as tar:
        libraries = {pathlib.PurePath(name).name for name in tar.getnames() if "/lib/reprise/" in name}
    contained = [packages[name] for name, kind in relations.items() if kind == "CONTAINS"]
    assert {name for package in contained for name in package["comment"].split()[1:]} == libraries
    compiled_in = {packages[name]["name"] for name, kind in relations.items() if kind == "STATIC_LINK"}
    assert {"nlohmann-json3-dev", "libcli11-dev", "node-react", "node-marked", "node-highlight.js"} <= compiled_in
    assert not [name for name in compiled_in if name.startswith("catch2")], "only tests use it"
    curl = next(package for package in contained if package["name"].startswith("libcurl4"))
    assert (curl["licenseDeclared"], curl["sourceInfo"].split()[-2]) == ("curl", "curl")
    assert curl["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/debian/libcurl4")


@pytest.mark.limit(120)
def test_the_archive_runs_with_its_own_libraries_from_a_home_folder(archive, make_home, make_server):
    home = make_home()
    with tarfile.open(archive) as tar:
        tar.extractall(home.path)
    tree = (home.path / archive.name.removesuffix(".tar.gz")).rename(home.path / "moved")
    program = home.path / "reprise"
    program.symlink_to(tree / "bin/reprise")
    done = subprocess.run([program, "doctor", "--data-dir", home.data], env=home.environment(LD_DEBUG="files"), cwd=home.path, capture_output=True, text=True, timeout=SOON, check=False)
    assert "all that are loaded when needed can be loaded" in done.stdout
    loaded = {pathlib.Path(name) for name in re.findall(r"calling init: (/\S+)", done.stderr)}
    assert {"libcurl.so.4", "libpq.so.5"} <= {path.name for path in loaded}
    assert not [path for path in loaded if path.parent.resolve() != tree / "lib/reprise" and not GLIBC.fullmatch(path.name)]
    assert run(program, "man").startswith(".TH REPRISE")

    server = make_server(home=home, binary=program, config={"approval_mode": "approve_all"})
    server.client.turn("c", "what is 2+2?")
    if sandbox_works():
        # The sandbox hides the home, but not the libraries, without which neither program would start in there. Each looks from its own folder.
        output = server.client.turn("c", f"run: ls {tree} {tree}/bin/../lib/reprise").one("tool_result")["tool_output"]
        assert "libcurl.so.4" in output and "share" not in output


# ---- certificates ----

def test_https_trusts_the_file_that_ssl_cert_file_names(make_home, tmp_path):
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)

    class Provider(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b'{"object": "list", "data": [{"id": "m1"}]}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = make_home()
        file = home.path / "providers.json"
        file.write_text(json.dumps({"providers": {"near": {"type": "openai", "base_url": f"https://127.0.0.1:{server.server_port}/v1"}}}))
        file.chmod(0o600)

        def checks(**environment):
            found = json.loads(reprise(home, "doctor", "--json", "--config", file, "--data-dir", home.data, **environment)[1])["checks"]
            return {check["check"]: (check["verdict"], check["message"]) for check in found}

        assert checks()["provider near"][0] == "fail"
        found = checks(SSL_CERT_FILE=str(certificate))
        assert found["provider near"][0] == "ok" and found["certificates"] == ("ok", f"HTTPS trusts those of {certificate}")
        assert checks(SSL_CERT_FILE=str(tmp_path / "none"))["certificates"][0] == "fail"
        server.shutdown()
