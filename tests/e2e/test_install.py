"""What `cmake --install` installs where, the built man pages and completions, and socket activation."""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from support.client import Client
from support.server import BINARY, ROOT
from support.timing import SLACK, SOON

BUILD = BINARY.parent


def run(*command, status=0, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * SOON, check=False, **options)
    assert done.returncode == status, (command, done.returncode, done.stdout[-1500:], done.stderr[-1500:])
    return done.stdout


def commands(*path):
    """Every command in --help: ("serve",), ("keys",), ("keys", "init"), ..."""
    helped = run(BINARY, *path, "--help")
    listed = helped.partition("Subcommands:\n")[2].partition("\n\n")[0]
    names = re.findall(r"^  ([a-z-]+)", listed, re.M)
    found = []
    for name in names:
        found += [(*path, name), *commands(*path, name)]
    return found


def flags(command):
    return set(re.findall(r"^  (?:-[a-z],)?(--[a-z-]+)", run(BINARY, *command, "--help"), re.M))


@pytest.fixture(scope="module")
def all_commands():
    found = commands()
    assert {("serve",), ("keys",), ("keys", "init"), ("completion",), ("man",)} <= set(found)
    return found


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """The completion scripts, by shell."""
    folder = tmp_path_factory.mktemp("completions")
    paths = {}
    for shell in ("bash", "zsh", "fish"):
        paths[shell] = folder / shell
        paths[shell].write_text(run(BINARY, "completion", shell))
    return paths


# ---- man pages ----

def make_docs(grammar, folder):
    """Makes the pages and completions of a grammar, as the build does."""
    done = subprocess.run([ROOT / "scripts/package.d/docs/make", folder], input=grammar, capture_output=True, text=True, timeout=SOON, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def option(**members):
    return {"names": [], "value": "", "help": "", "required": False, "repeated": False, "choices": [], "variable": "", **members}


def command(name, **members):
    return {"name": name, "help": "", "flags": [], "arguments": [], "examples": [], **members}


def test_names_escapes_and_sections_of_a_man_page(tmp_path):
    fly = command("fly high", help="Fly at a well-known 'height'", arguments=[option(value="WHERE", help="a place", required=True, repeated=True)],
                  flags=[option(names=["-s", "--speed"], value="N", choices=["slow", "fast"], help=".5 is \\slow", variable="REPRISE_SPEED")],
                  examples=[{"line": "reprise fly high ~", "what": "home, by `fly`"}])
    make_docs(json.dumps({"version": "1.2", "commands": [command("", help="A program."), command("fly"), fly]}), tmp_path / "share")
    pages = tmp_path / "share/man/man1"
    assert {page.name for page in pages.iterdir()} == {"reprise.1", "reprise-fly.1", "reprise-fly-high.1"}
    page = (pages / "reprise-fly-high.1").read_text()
    assert page.startswith('.TH REPRISE\\-FLY\\-HIGH 1 "" "reprise 1.2" ')
    assert "reprise\\-fly\\-high \\- Fly at a well-known \\(aqheight\\(aq\n" in page
    assert "\\fBreprise fly high\\fP [\\fIOPTION\\fP\\~...] \\fIWHERE\\fP\\~...\n" in page
    # A dot at the beginning of a line would be a macro.
    assert ".TP\n\\fB\\-s\\fP, \\fB\\-\\-speed\\fP \\fIN\\fP\n\\&.5 is \\eslow. One of: fast.\n" in page
    assert ".SH ENVIRONMENT\n.TP\n\\fBREPRISE_SPEED\\fP\nAs \\fB\\-\\-speed\\fP.\n" in page
    assert ".SH EXAMPLES\n.TP\n\\fBreprise fly high \\(ti\\fP\nhome, by \\fBfly\\fP.\n" in page
    assert page.endswith(".SH SEE ALSO\n.BR reprise (1),\n.BR reprise\\-fly (1)\n")


def test_each_longer_text_belongs_to_a_command(all_commands):
    headings = re.findall(r"^## (.*)$", (ROOT / "scripts/package.d/docs/descriptions.md").read_text(), re.M)
    assert len(headings) > 10 and set(headings) <= {" ".join(["reprise", *command]) for command in [(), *all_commands]}


def test_the_build_has_what_is_made_of_its_grammar(tmp_path):
    if not (BUILD / "share").exists():
        pytest.skip("the binary does not lie in its build folder")
    make_docs(run(BINARY, "man", "--grammar"), tmp_path)
    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {path.relative_to(BUILD / "share"): path.read_text() for path in (BUILD / "share").rglob("*") if path.is_file()}


def test_pages_that_are_compressed_are_printed_and_missing_ones_are_missed(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(BINARY, tmp_path / "bin/reprise")
    for command in ("man", "completion bash"):
        done = subprocess.run([tmp_path / "bin/reprise", *command.split()], capture_output=True, text=True, timeout=SOON, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"reprise: the {'man pages' if command == 'man' else 'completions'} are not installed beside this program\n"
    page = run(BINARY, "man")
    (tmp_path / "share/man/man1").mkdir(parents=True)
    with gzip.open(tmp_path / "share/man/man1/reprise.1.gz", "wt") as file:
        file.write(page)
    assert run(tmp_path / "bin/reprise", "man") == page

def test_every_command_has_a_man_page_that_names_its_flags(all_commands):
    for command in [(), *all_commands]:
        page = run(BINARY, "man", *command)
        title = "-".join(["reprise", *command]).upper().replace("-", "\\-")
        assert page.startswith(f".TH {title} 1 "), page[:200]
        sections = re.findall(r"^\.SH (.*)", page, re.M)
        assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"] and sections[-1] == "SEE ALSO"
        assert {"OPTIONS", "EXIT STATUS"} <= set(sections)
        plain = page.replace("\\-", "-")
        missing = {flag for flag in flags(command) if f"\\fB{flag}\\fP" not in plain}
        assert not missing, (command, missing)


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff")
def test_groff_has_nothing_to_say_about_the_man_pages(tmp_path):
    make_docs(run(BINARY, "man", "--grammar"), tmp_path / "share")
    pages = sorted((tmp_path / "share/man/man1").iterdir())
    assert tmp_path / "share/man/man1/reprise-keys-init.1" in pages
    for page in pages:
        done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-z", str(page)], capture_output=True, text=True, timeout=SOON, check=False)
        assert (done.returncode, done.stderr) == (0, ""), page


def test_a_man_page_that_there_is_not():
    done = subprocess.run([str(BINARY), "man", "fly"], capture_output=True, text=True, timeout=SOON, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "reprise: there is no command fly (reprise --help lists them)\n"


# ---- completions ----

def complete(script, home, *words, cwd=None):
    """Bash's completions of the last word. Bash splits --flag=value into three words."""
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _reprise; printf "%s\\n" "${COMPREPLY[@]}"'
    done = run("bash", "--norc", "-c", code, "bash", script, BINARY, *words, env=home.environment(), cwd=cwd or home.path)
    return sorted(done.split())


def test_the_scripts_are_well_formed(scripts):
    for shell, path in scripts.items():
        if shutil.which(shell):
            run(shell, "-n", path)


def test_every_command_and_flag_is_in_each_completion(all_commands, scripts, make_home):
    home = make_home()
    for command in all_commands:
        assert command[-1] in complete(scripts["bash"], home, *command[:-1], ""), command
        offered = set(complete(scripts["bash"], home, *command, "--"))
        assert offered == flags(command), command
        name = " ".join(command)
        for flag in flags(command):
            assert f"complete -c reprise -n \"__reprise_at '{name}'\"" in scripts["fish"].read_text()
            assert re.search(rf"__reprise_at '{name}'\".* -l {flag[2:]} ", scripts["fish"].read_text()), (command, flag)
        function = scripts["zsh"].read_text().partition("\n_reprise_" + "_".join(command).replace("-", "_") + "() {\n")[2].partition("\n}\n")[0]
        assert {found for found in re.findall(r"'\*?(--[a-z-]+)=?\[", function)} == flags(command), command


def test_bash_completes_commands_values_and_files(scripts, make_home):
    home = make_home()
    folder = home.path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "infile.json").touch()

    def offers(*words):
        return complete(scripts["bash"], home, *words, cwd=folder)

    assert offers("ke") == ["keys"]
    assert offers("keys", "in") == ["init"]
    assert offers("serve", "--log-level", "") == ["debug", "error", "info", "warning"]
    assert offers("serve", "--log-level", "=", "d") == ["debug"]
    assert offers("serve", "--log-level", "=") == ["debug", "error", "info", "warning"]
    assert offers("replay", "--mode", "ev") == ["events"]
    assert offers("completion", "") == ["bash", "fish", "zsh"]
    assert offers("help", "doc") == ["doctor"]
    assert offers("serve", "--data-dir", "in") == ["inner"]
    assert offers("serve", "--config", "in") == ["infile.json", "inner"]
    assert offers("serve", "--port", "in") == []
    # A flag's value is not taken for a command; the word after it is.
    assert offers("keys", "passphrase", "--key-file", "serve", "--rem") == ["--remove"]


@pytest.mark.skipif(not shutil.which("fish"), reason="there is no fish")
def test_fish_completes_the_same(scripts, make_home):
    home = make_home()
    folder = home.path / "folder"
    (folder / "inner").mkdir(parents=True)
    (folder / "infile.json").touch()

    def offers(line):
        done = run("fish", "--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"', scripts["fish"], line,
                   env=home.environment(PATH=f"{BUILD}:{os.environ['PATH']}"), cwd=folder)
        return sorted(offered.split("\t")[0] for offered in done.splitlines())

    assert offers("reprise ke") == ["keys"]
    assert offers("reprise keys in") == ["init"]
    assert offers("reprise serve --log-level ") == ["debug", "error", "info", "warning"]
    assert offers("reprise serve --log-level=d") == ["--log-level=debug"]
    assert offers("reprise completion ") == ["bash", "fish", "zsh"]
    assert offers("reprise serve --data-dir in") == ["inner/"]
    assert offers("reprise serve --config in") == ["infile.json", "inner/"]
    assert offers("reprise keys passphrase --key-file x --rem") == ["--remove"]


def test_bash_completes_chats_of_the_folder_that_the_line_names(scripts, make_server):
    server = make_server()
    for chat in ("alpha", "alphabet", "beta"):
        server.client.turn(chat, "what is 2+2?")
    home = server.home

    def offers(*words):
        return complete(scripts["bash"], home, *words, cwd=home.workspace)

    assert offers("export", "--data-dir", home.data, "al") == ["alpha", "alphabet"]
    assert offers("show", "--data-dir", "=", home.data, "be") == ["beta"]
    assert offers("search", "--data-dir", home.data, "text", "--chat", "") == ["alpha", "alphabet", "beta"]
    assert offers("export", "--data-dir", home.path / "nowhere", "") == []


def test_chats_are_listed_without_a_key(make_server):
    server = make_server()
    server.client.turn("alpha", "what is 2+2?")
    server.stop()
    home = server.home
    server.check_files = False  # the key of the files is gone
    home.keys.unlink()
    assert run(BINARY, "completion", "--chats", "--data-dir", home.data, env=home.environment(), cwd=home.path) == "alpha\n"


# ---- cmake --install ----

@pytest.fixture(scope="module")
def built():
    """The build folder of this binary, with its pages built."""
    if not (BUILD / "cmake_install.cmake").exists() or not shutil.which("cmake"):
        pytest.skip("the binary does not lie in its build folder")
    if "systemd/user" not in (BUILD / "cmake_install.cmake").read_text():
        pytest.skip("this build is not to be installed (under a sanitizer nothing is)")
    return BUILD


def files_below(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def expected_files(all_commands):
    pages = {"-".join(["reprise", *command]) for command in [(), *all_commands]}
    docs = {f"share/doc/reprise/{page.relative_to(ROOT)}" for page in (ROOT / "docs").rglob("*") if page.is_file()}
    return {"bin/reprise", "libexec/reprise/reprise-document", "libexec/reprise/reprise-start", *(f"share/man/man1/{page}.1" for page in pages), "share/bash-completion/completions/reprise", "share/zsh/site-functions/_reprise",
            "share/fish/vendor_completions.d/reprise.fish", "share/doc/reprise/LICENSE", "share/doc/reprise/README.md", *docs,
            *(f"share/doc/reprise/schemas/{page.name}" for page in (ROOT / "schemas").glob("*.md")),
            *(f"share/reprise/schemas/{schema.name}" for schema in (ROOT / "schemas").glob("*.json")),
            "share/systemd/user/reprise.service", "share/systemd/user/reprise.socket"}


def test_install_puts_everything_in_its_place(built, all_commands, tmp_path):
    run("cmake", "--install", built, "--prefix", tmp_path / "prefix")
    assert files_below(tmp_path / "prefix") == expected_files(all_commands)
    installed = tmp_path / "prefix" / "bin" / "reprise"
    assert run(installed, "--version") == run(BINARY, "--version")
    service = (tmp_path / "prefix/share/systemd/user/reprise.service").read_text()
    assert f"\nExecStart={installed} serve\n" in service and "@BINDIR@" not in service
    assert (tmp_path / "prefix/share/man/man1/reprise-serve.1").read_text() == run(BINARY, "man", "serve")
    assert (tmp_path / "prefix/share/bash-completion/completions/reprise").read_text() == run(BINARY, "completion", "bash")


def test_install_honours_destdir(built, all_commands, tmp_path):
    run("cmake", "--install", built, "--prefix", "/opt/reprise", env={**os.environ, "DESTDIR": str(tmp_path)})
    assert files_below(tmp_path / "opt/reprise") == expected_files(all_commands)
    assert {path.name for path in tmp_path.iterdir()} == {"opt"}
    service = (tmp_path / "opt/reprise/share/systemd/user/reprise.service").read_text()
    assert "\nExecStart=/opt/reprise/bin/reprise serve\n" in service


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_understands_the_units(built, tmp_path):
    run("cmake", "--install", built, "--prefix", tmp_path)
    units = [tmp_path / "share/systemd/user" / name for name in ("reprise.service", "reprise.socket")]
    done = subprocess.run(["systemd-analyze", "--user", "verify", "--man=no", *map(str, units)], capture_output=True, text=True, timeout=2 * SOON, check=False,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    complaints = [line for line in done.stderr.splitlines() if "reprise" in line]
    assert not complaints, complaints


# ---- socket activation ----

class Activated:
    """A server started as by a service manager: its sockets are descriptors 3 and up, and it reports when it is ready."""

    def __init__(self, home, descriptors, arguments=(), listen_fds=None):
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind("")  # the kernel picks an abstract name
        self.notify.settimeout(SOON)
        # exec keeps the process id, so LISTEN_PID is the server's.
        moves = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(descriptors))
        code = f'LISTEN_PID=$$ exec "$@" {moves}'
        environment = home.environment(LISTEN_FDS=str(len(descriptors) if listen_fds is None else listen_fds),
                                       NOTIFY_SOCKET="@" + self.notify.getsockname()[1:].decode())
        self.process = subprocess.Popen(["bash", "-c", code, "bash", str(BINARY), "serve", "--data-dir", str(home.data), "--workspace", str(home.workspace),
                                         *map(str, arguments)], pass_fds=descriptors, env=environment, cwd=home.path, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def told(self):
        return self.notify.recv(4096).decode()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)  # a second signal would end it at once

    def end(self):
        out, err = self.process.communicate(timeout=SOON)
        self.notify.close()
        return self.process.returncode, out, err


@pytest.fixture
def listening():
    sockets = []

    def make(host="127.0.0.1"):
        made = socket.create_server((host, 0))
        os.set_inheritable(made.fileno(), True)
        sockets.append(made)
        # Move it out of the way of 3, 4, ..., which bash replaces one by one.
        high = os.dup(made.fileno())
        while high < 20:
            high = os.dup(high)
        return made, high

    yield make
    for made in sockets:
        made.close()


def test_serves_on_the_socket_of_a_service_manager(make_home, listening):
    made, fd = listening()
    port = made.getsockname()[1]
    # The server answers a request sent before it was started.
    early = socket.create_connection(("127.0.0.1", port), timeout=SOON)
    early.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    server = Activated(make_home(), [fd], ["--port", "1", "--approval-mode", "approve_all"])  # the port is ignored
    assert server.told() == "READY=1"
    with early, early.makefile("rb") as answer:
        assert answer.read().startswith(b"HTTP/1.1 200 ")
    client = Client(port)
    client.turn("c", "what is 2+2?")
    # Its commands inherit neither the socket nor the variables.
    output = client.turn("c", "run: env; ls -l /proc/self/fd").one("tool_result")["tool_output"]
    assert "PATH=" in output and "LISTEN_" not in output and "NOTIFY_SOCKET" not in output and "socket:" not in output
    server.stop()
    status, out, err = server.end()
    assert status == 0, err
    assert out == f"reprise listening on http://127.0.0.1:{port}\n"


def test_tells_the_service_manager_that_it_stops(make_home, listening):
    _, fd = listening()
    server = Activated(make_home(), [fd])
    assert server.told() == "READY=1"
    server.stop()
    assert server.told() == "STOPPING=1"
    assert server.end()[0] == 0


@pytest.mark.parametrize("what", ["file", "closed", "everyone"])
def test_refuses_descriptors_that_it_cannot_serve_on(make_home, listening, tmp_path, what):
    expected = {"file": "the socket that was handed over (descriptor 3) is not a TCP socket that listens",
                "closed": "LISTEN_FDS names descriptor 4, which is not open",
                "everyone": "the socket that was handed over (descriptor 3) listens on 0.0.0.0, which is not loopback: that needs a token"}
    with open(tmp_path / "plain", "w", encoding="ascii") as file:
        fd = file.fileno() if what == "file" else listening("0.0.0.0" if what == "everyone" else "127.0.0.1")[1]
        server = Activated(make_home(), [fd], listen_fds=2 if what == "closed" else None)
        status, out, err = server.end()
    assert (status, out) == (1, ""), err
    assert err.splitlines()[-1] == f"reprise: {expected[what]}"


def test_sockets_for_another_process_are_left_alone(make_home, make_server):
    server = make_server(environment={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
    assert server.client.get("/healthz").status == 200


# ---- the package ----

@pytest.mark.limit(600)
@pytest.mark.skipif(os.environ.get("REPRISE_PACKAGE_TEST") != "1", reason="takes a while: REPRISE_PACKAGE_TEST=1 runs it")
def test_the_debian_package():
    done = subprocess.run(["scripts/package", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=600 * SLACK, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    package = pathlib.Path(done.stdout.splitlines()[-1])
    assert (ROOT / package).is_file() and package.name.startswith("reprise_")
