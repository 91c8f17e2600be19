"""`reprise chat`: the terminal client, fed through a pipe."""
import http.server
import json
import os
import signal
import subprocess
import threading

from support.provider import Gate, call, failure, text, tools
from support.server import BINARY
from support.timing import SOON


def chat(server, lines, *arguments, name="c"):
    done = subprocess.run([str(BINARY), "chat", name, "--url", f"http://127.0.0.1:{server.port}", *arguments], input="".join(f"{l}\n" for l in lines),
                          env=server.home.environment(), capture_output=True, text=True, timeout=SOON, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_conversation(server, provider):
    provider.plan(text("Hel", "lo"), text("b"), text("c"))
    status, out, err = chat(server, ["hi", "and?", "/undo", "/edit better", "/history", "/nonsense", "/help", "/quit", "never said"])
    assert (status, err) == (0, "reprise: there is no such command (/help lists them; // before it sends it as text)\n")
    assert "> Hello\n" in out and "> b\n" in out and "back to int_001\n" in out
    assert "  you    better\n" in out and "never said" not in out
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == ["better"]


def test_a_commands_model_comes_before_that_of_the_command_line(server, provider):
    own = server.home.config / "reprise" / "commands"
    own.mkdir(mode=0o700)
    (own / "fix.md").write_text("---\nmodel: test/other\n---\nFix $1.\n")
    (own / "fix.md").chmod(0o600)
    provider.plan(text("done"), text("hi"))
    assert chat(server, ["/fix it", "hello"], "--model", "test/scripted")[0] == 0
    assert [r.body["model"] for r in provider.requests] == ["other", "scripted"]


def test_tools_and_approvals(server, provider):
    for number in range(4):
        provider.plan(tools(call("write_file", {"path": f"f{number}.txt", "content": "1"}, f"w{number}")), text("done"))
    edited = json.dumps({"path": "edited.txt", "content": "2"})
    status, out, err = chat(server, ["one", "what?", "y", "two", "n", "three", "e", "no json", "e", edited, "four"])
    assert status == 0 and "must be a JSON object" in err
    assert '[write_file {"path":' in out and "allow? [y]es" in out
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["edited.txt", "f0.txt"], "end of input approves nothing"


def test_a_question_of_a_tool(server, provider):
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": ["red", "blue"]})), text("fine"))
    status, out, _ = chat(server, ["q", "blue"])
    assert status == 0 and "Which?\n  - red\n  - blue\nanswer: " in out
    assert provider.requests[-1].conversation[-1]["content"] == "blue"


def test_events_as_lines_of_json(server, provider):
    provider.plan(text("hello"))
    status, out, _ = chat(server, ["hi"], "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and events[0]["type"] == "INTERACTION_STARTED" and events[-1]["status"] == "COMPLETED"


def test_what_a_model_says_cannot_steer_the_terminal(server, provider):
    provider.plan(text("a\x1b[2Jb"))
    _, out, _ = chat(server, ["hi"])
    assert "\x1b" not in out and "a<U+001B>[2Jb" in out


def test_line_breaks_of_an_answer_stay_however_it_was_cut(server, provider):
    provider.plan(text("- one\n", "- two", "\n\n", "end\r", "\nreally\n"))
    _, out, _ = chat(server, ["hi"])
    assert "> - one\n- two\n\nend\nreally\n> " in out


def test_results_say_which_of_several_calls_they_are_of(server, provider):
    calls = [call("write_file", {"path": f"{name}.txt", "content": "1"}, name) for name in ("a", "b")]
    provider.plan(tools(*calls), text("done"), tools(call("calculator", {"expression": "2+2"})), text("done"))
    _, out, _ = chat(server, ["hi", "y", "n", "one"])
    assert "  write_file a.txt: " in out and "  write_file b.txt: " in out and "  4\n" in out


def test_a_pipe_is_told_what_waits_and_its_lines_do_not_answer_it(server, provider):
    provider.plan(tools(call("write_file", {"path": "f.txt", "content": "1"})))
    server.client.start("c", "do it").until("approval_required")
    status, _, err = chat(server, ["y", "/approvals"])
    assert status == 1 and "a turn waits for you in this chat (/follow shows it)" in err
    assert len(server.client.get("/approvals").json["approvals"]) == 1 and not list(server.home.workspace.iterdir())
    provider.plan(text("done"))
    assert chat(server, ["/follow", "y"])[0] == 0 and (server.home.workspace / "f.txt").exists()


def test_ctrl_c_cancels_the_run(server, provider):
    gate = Gate()
    provider.plan(text("half", gate))
    process = subprocess.Popen([str(BINARY), "chat", "c", "--url", f"http://127.0.0.1:{server.port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=server.home.environment(), text=True)
    process.stdin.write("hi\n")
    process.stdin.flush()
    gate.wait_reached()
    seen = ""
    while "half" not in seen:
        seen += process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=SOON)
    assert "(cancelled)" in out and process.returncode == 1
    assert server.client.interaction("c", "int_001")["status"] == "CANCELLED"


def test_what_a_server_leaves_out_of_a_chat_does_no_harm(make_home):
    chats = [{}, {"interactions": "none"}, {"interactions": [{"id": "int_001", "status": "COMPLETED", "user_message": "hi"}, 1]}]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(chats[0] if self.path.startswith("/chats") else {}).encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        for _ in range(3):
            done = subprocess.run([str(BINARY), "chat", "c", "--url", f"http://127.0.0.1:{other.server_port}"], input="/history\n/approvals\n",
                                  env=make_home().environment(), capture_output=True, text=True, timeout=SOON, check=False)
            assert (done.returncode, done.stderr) == (0, ""), chats[0]
            assert done.stdout.endswith("> nothing waits for you\n> "), done.stdout
            chats.append(chats.pop(0))
        assert "int_001  COMPLETED\n  you    hi\n" in done.stdout
        other.shutdown()


def test_another_program_at_the_address_is_told_apart(make_home):
    answers = [b"[]", b"1", b'{"chats": 1, "models": "x", "approvals": 2, "inputs": {}, "entries": 3}']

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[0])

        do_DELETE = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()

        def run(*arguments, typed=""):
            return subprocess.run([str(BINARY), *arguments, "--url", f"http://127.0.0.1:{other.server_port}"], input=typed, env=make_home().environment(),
                                  capture_output=True, text=True, timeout=SOON, check=False)

        for _ in range(2):
            for command in (["models"], ["approvals"], ["rm", "c"], ["restore"]):
                done = run(*command)
                assert done.returncode == 1 and "not a Reprise server" in done.stderr and not done.stdout, (answers[0], command, done)
            answers.pop(0)
        for command, said in (("models", ""), ("approvals", "nothing waits for you\n"), ("restore", "the trash is empty\n")):
            assert run(command).stdout == said
        answers[0] = b"[]"
        done = run("chat", "c", typed="/follow\n")
        assert done.returncode == 1 and "not a Reprise server" in done.stderr and "nothing runs" not in done.stderr
        other.shutdown()


def test_no_server_and_wrong_usage(server):
    wrong = subprocess.run([str(BINARY), "chat", "../x"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert wrong.returncode == 2
    gone = subprocess.run([str(BINARY), "chat", "--url", "http://127.0.0.1:1"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert gone.returncode == 1 and gone.stderr.startswith(b"reprise: ")
    folder = os.open("/", os.O_RDONLY)
    unread = subprocess.run([str(BINARY), "-p", "x", "--url", f"http://127.0.0.1:{server.port}"], capture_output=True, check=False, stdin=folder)
    os.close(folder)
    assert unread.returncode == 1 and b"standard input cannot be read" in unread.stderr


def test_a_chat_for_one_message_goes_to_the_trash(server, provider):
    def once(*arguments):
        done = subprocess.run([str(BINARY), *arguments, "--url", f"http://127.0.0.1:{server.port}"], env=server.home.environment(), cwd=server.home.workspace,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=False)
        return done.returncode, done.stdout, done.stderr

    def kept():
        return len(server.client.get("/chats").json["chats"]), len(server.client.get("/trash").json["entries"])

    provider.plan(text("four"))
    assert once("-p", "2+2?", "--rm") == (0, "four\n", "") and kept() == (0, 1)
    provider.plan(failure(400))
    assert once("-p", "2+2?", "--rm")[0] == 1 and kept() == (0, 2)
    provider.plan(tools(call("write_file", {"path": "f", "content": "1"})))
    status, _, said = once("-p", "write", "--rm")
    assert status == 1 and "an approval is needed" in said and kept() == (1, 2), "it waits"
    for more in (["--chat", "c", "-p", "x"], ["--continue", "-p", "x"]):
        status, _, said = once(*more, "--rm")
        assert status == 2 and "--rm" in said, more
    assert kept() == (1, 2)
