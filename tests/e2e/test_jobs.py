"""Background jobs, and outputs of which the model gets only parts."""
import json
import os
import re

import pytest
from support.provider import call, text, tools
from support.server import processes
from support.timing import eventually


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, config={"approval_mode": "approve_all"})


class Chat:
    def __init__(self, server, provider, name="c"):
        self.server, self.provider, self.client, self.name = server, provider, server.client, name
        self.turns = 0

    def turn(self, tool, **arguments):
        self.turns += 1
        self.provider.plan(tools(call(tool, arguments, f"call_{self.turns}")), text("done"))
        return self.client.turn(self.name, f"turn {self.turns}")

    def run(self, tool, **arguments):
        return self.turn(tool, **arguments).one("tool_result")

    def told(self):
        """What the model got as the last result."""
        return self.provider.requests[-1].conversation[-1]["content"]

    def start(self, command):
        events = self.turn("run_shell", command=command, background=True)
        assert not events.one("tool_result")["is_error"], events.one("tool_result")
        return events.one("job_started")["job_id"]

    def jobs(self):
        return self.client.get(f"/chats/{self.name}/jobs").expect(200, "jobs").json["jobs"]

    def job(self, job, after=0):
        return self.client.get(f"/chats/{self.name}/jobs/{job}?after={after}").expect(200, "job_output").json


@pytest.fixture
def chat(server, provider):
    return Chat(server, provider)


def gone(marker):
    eventually(lambda: not processes(marker), f"no process of {marker} is left")


# --- long outputs

def test_the_whole_of_a_long_output_is_kept_and_can_be_read_and_searched(chat):
    result = chat.run("run_shell", command="seq 1 600000")
    told = chat.told()
    assert len(told) < 33 << 10
    kept = re.search(r'take the path \\?"(file_[0-9a-f]{32})\\?"', told)
    assert kept and "4,088,895 bytes" in told, told[-300:]
    part = chat.run("read_file", path=kept[1], offset=400_000, limit=2)["tool_output"]
    assert part.startswith("400000\n400001\n"), part
    found = chat.run("search_files", path=kept[1], pattern="^599999$")["tool_output"]
    assert f"{kept[1]}:599999: 599999" in found
    assert len(result["tool_output"]) < 70 << 10


FIFTY = {"lines": "yes 0123456789012345678901234567890123456789012345678 | head -c 50000000", "one line": "head -c 50000000 /dev/zero | tr '\\0' x",
         "progress": "yes 'so many percent' | tr '\\n' '\\r' | head -c 50000000", "no text": "head -c 50000000 /dev/urandom"}


@pytest.mark.skipif("SAN_OPTIONS" in "".join(os.environ), reason="sanitizers keep what is freed")
@pytest.mark.parametrize("how, what", [("run_shell", each) for each in FIFTY] + [("run_code", "lines"), ("job", "lines"), ("job", "no text")])
def test_fifty_megabytes_cost_the_model_32_kib_and_the_server_20_mb(chat, figure, how, what):
    chat.run("run_shell", command="echo warm")
    before = chat.server.peak_memory_kb()
    if how == "run_shell":
        chat.run("run_shell", command=FIFTY[what])
    elif how == "run_code":
        chat.run("run_code", language="shell", code=FIFTY[what])
    else:
        job = chat.start(FIFTY[what])
        eventually(lambda: not chat.jobs()[0]["running"], "the job has ended", limit=60)
        chat.run("read_job", job_id=job)
    used, told = chat.server.peak_memory_kb() - before, len(chat.told().encode())
    figure(f"50 MB of output, {how}, {what}: {told} bytes for the model, {used} KB of the server's memory")
    assert told <= 32 << 10, told
    assert "whole output" in chat.told() and (what != "lines" or "50,000,000 bytes" in chat.told()), chat.told()[-300:]
    assert used < 20_000, used
    # The fixture opens every file, which would take long.
    for file in chat.client.get("/chats/c/files").expect(200).json["files"]:
        chat.client.request("DELETE", f"/chats/c/files/{file['id']}").expect(200)


def test_a_chat_keeps_no_more_of_its_outputs_than_the_setting_allows(make_server, provider):
    chat = Chat(make_server(provider, config={"approval_mode": "approve_all", "tools": {"output": {"told_kb": 1, "kept_mb": 2}}}), provider)
    chat.run("run_shell", command="head -c 1500000 /dev/zero | tr '\\0' a")
    first = re.search(r"file_[0-9a-f]{32}", chat.told())[0]
    assert len(chat.told()) < 3 << 10
    chat.run("run_shell", command="head -c 1500000 /dev/zero | tr '\\0' b")
    assert chat.run("read_file", path=first)["is_error"], "the older output has made room"
    chat.run("run_shell", command="seq 1 1000000")
    assert "from its beginning and its end are kept" in chat.told()
    files = chat.client.get("/chats/c/files").expect(200).json["files"]
    assert sum(f["size_bytes"] for f in files) <= (2 << 20) + (64 << 10)


# --- jobs

def test_a_job_survives_its_turn_and_is_read_and_stopped(chat):
    job = chat.start("echo ready; exec sleep 987654")
    assert [j["running"] for j in chat.jobs()] == [True]
    eventually(lambda: chat.job(job)["output"] == "ready\n", "its output is there")
    read = chat.run("read_job", job_id=job)["tool_output"]
    assert read.startswith("ready\n(The job runs"), read
    assert not chat.run("read_job", job_id=job)["tool_output"].startswith("ready")
    stopped = chat.turn("stop_job", job_id=job)
    assert "was stopped" in stopped.one("tool_result")["tool_output"]
    assert stopped.one("job_ended")["reason"] == "stopped"
    gone("sleep 987654")
    assert [j["end"] for j in chat.jobs()] == ["stopped"]
    assert chat.job(job)["end"] == "stopped"


def test_a_server_runs_in_the_background(chat):
    job = chat.start("python3 -u -m http.server 8765 --bind 127.0.0.1")
    eventually(lambda: "Serving HTTP" in chat.job(job)["output"], "it listens")
    assert [j["running"] for j in chat.jobs()] == [True]


def test_the_next_turn_tells_the_model_of_a_job_that_ended_between_turns(chat):
    job = chat.start("echo bye; exit 3")
    eventually(lambda: not chat.jobs()[0]["running"], "it ends")
    chat.provider.plan(text("fine"))
    events = chat.client.turn("c", "and?")
    # The job may have ended within its own turn.
    all_ended = [e for i in chat.client.history("c")["interactions"] for e in i["agent_events"] if e["type"] == "JOB_ENDED"]
    assert [(e["job_id"], e["reason"], e["status"]) for e in all_ended] == [(job, "exited", 3)]
    sent = json.dumps(chat.provider.requests[-1].conversation)
    assert f"The background job {job} has ended with exit status 3." in sent
    assert events.one("interaction_complete")["status"] == "COMPLETED"


@pytest.mark.parametrize("command", [
    "trap '' TERM INT HUP; sleep 876543 & sleep 876543",
    "setsid sh -c 'setsid sleep 876543 & setsid sleep 876543 &'; sleep 876543",
    "(sleep 876543 &) ; yes > /dev/null & yes; sleep 876543",
    "yes",
])
@pytest.mark.parametrize("how", ["stop", "delete", "end", "kill"])
def test_all_processes_of_a_job_are_killed(chat, command, how):
    job = chat.start("echo begun; " + command)
    eventually(lambda: "begun" in chat.job(job)["output"] or chat.job(job)["output_bytes"] > 6, "it runs")
    if how == "stop":
        assert chat.client.post(f"/chats/c/jobs/{job}/stop").expect(200, "job").json["end"] == "stopped"
    elif how == "delete":
        chat.client.request("DELETE", "/chats/c").expect(200)
    elif how == "end":
        chat.server.stop()
    else:
        chat.server.kill()
    gone("sleep 876543")


def test_after_a_restart_the_record_says_that_the_jobs_have_ended(make_server, provider, server):
    job = Chat(server, provider).start("exec sleep 765432")
    server.kill()
    gone("sleep 765432")
    again = make_server(provider, home=server.home, config={"approval_mode": "approve_all"})
    chat = Chat(again, provider)
    assert [(j["id"], j["running"], j["end"]) for j in chat.jobs()] == [(job, False, "lost")]
    provider.plan(text("fine"))
    ended = again.client.turn("c", "and?").one("job_ended")
    assert (ended["job_id"], ended["reason"]) == (job, "lost")
    assert f"The background job {job} has ended, because its server has stopped" in json.dumps(provider.requests[-1].conversation)
    assert chat.jobs() == [], "the agent knows, and nothing is left of it"


def test_limits_unknown_jobs_and_approval(make_server, provider):
    server = make_server(provider, config={"tools": {"jobs": {"per_chat": 1}}})
    chat = Chat(server, provider)
    provider.plan(tools(call("run_shell", {"command": "exec sleep 654321", "background": True}, "call_1")),
                  tools(call("run_shell", {"command": "exec sleep 654321", "background": True}, "call_2")), text("done"))
    run = chat.client.start("c", "go")
    for _ in range(2):
        asked = run.until("approval_required")
        assert json.loads(asked["tool_input"])["background"] is True
        chat.client.approve("c", run.interaction, asked["approval_id"])
    run.finish()
    first, second = run.all("tool_result")
    assert not first["is_error"] and second["is_error"] and "may run at once" in second["tool_output"]
    chat.client.get("/chats/c/jobs/job_0000000000000000").error(404, "no_such_job")
    chat.client.post("/chats/c/jobs/job_0000000000000000/stop").error(404, "no_such_job")
    chat.client.get("/chats/none/jobs").error(404)
    server.stop()
    gone("sleep 654321")
