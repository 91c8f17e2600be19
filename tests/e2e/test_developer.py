"""A developer's session: clone, install, change, test, commit, push, and a dev server seen in a browser. People are asked about hosts, and in the mode `auto`
about a background job, because no rewind takes back what it changes after its turn."""
import json
import subprocess

import pytest
from support import forge
from support.provider import call, text, tools
from support.server import sandbox_works
from support.timing import eventually

pytestmark = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")

APP = """const greet = require("greet-thing");
require("http").createServer((request, response) => {
  response.setHeader("Content-Type", "text/html");
  response.end("<p id=said>" + greet("developer") + "</p>");
}).listen(8080, "127.0.0.1");
"""
CHECK = """import subprocess, unittest
import wordthing
class Greets(unittest.TestCase):
    def test_words(self):
        said = subprocess.run(["node", "-e", "console.log(require('greet-thing')('test'))"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.strip(), wordthing.word + " test")
unittest.main()
"""
SERVE = "cd site && exec node app.js"


class Session:
    def __init__(self, server, provider):
        self.server, self.provider, self.client = server, provider, server.client
        self.turns, self.asked = 0, []

    def do(self, tool, **arguments):
        """Lets the agent make this call; the person allows each host that is asked about, for the chat. Returns the result and the events."""
        self.turns += 1
        self.provider.plan(tools(call(tool, arguments, f"call_{self.turns}")), text("done"))
        stream, seen = self.client.start("c", f"turn {self.turns}"), []
        while not seen or seen[-1].name != "interaction_complete":
            seen.append(stream.next())
            if seen[-1].name == "approval_required":
                said = json.loads(seen[-1]["tool_input"])
                self.asked.append(said.get("host", said.get("command")))
                patterns = {"pattern": each["pattern"] for each in seen[-1].data.get("patterns", [])}  # the widest: the host, whatever the command
                self.client.approve("c", stream.interaction, seen[-1]["approval_id"], scope="chat", **patterns).expect(200)
        result = next(each for each in seen if each.name == "tool_result")
        assert not result["is_error"], result["tool_output"]
        return result["tool_output"], seen

    def shell(self, command):
        return self.do("run_shell", command=command)[0]

    def serve(self, port):
        """Starts the dev server; the person opens its port. Returns its job and its address for a browser."""
        _, seen = self.do("run_shell", command=SERVE, background=True)
        job = next(each for each in seen if each.name == "job_started")["job_id"]
        path = f"/chats/c/jobs/{job}"
        eventually(lambda: [each["port"] for each in self.client.get(path).json.get("ports", [])] == [port], "the dev server listens")
        return job, self.client.post(f"{path}/ports/{port}/open").expect(200, "job_port").json["url"]


@pytest.mark.limit(90)
@pytest.mark.parametrize("mode, rule, limits", [
    pytest.param("auto", "unasked", {}, marks=pytest.mark.large),  # with the limits that users have, under which a sanitized program takes no ways into a job
    ("approve_all", "allow", {"memory_mb": 0})])
def test_a_session_asks_about_hosts(mode, rule, limits, make_home, make_server, provider, browse, tmp_path):
    home, repositories = make_home(), tmp_path / "repositories"
    (home.user / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", repositories / "site.git"], check=True)
    git = forge.serve_git(repositories, "127.0.0.2")
    npm = forge.serve_npm(tmp_path / "npm", "127.0.0.3", "greet-thing", "module.exports = (whom) => 'hello ' + whom;")
    index = forge.serve_python(tmp_path / "index", "127.0.0.4", "wordthing", "word = 'hello'")
    agent = Session(make_server(provider, home, config={"approval_mode": mode, "tools": {"network": {"ask": True, rule: [npm.host]}, "limits": limits}}), provider)

    agent.shell(f"git clone -q {git.url}/site.git site")
    agent.do("write_file", path="site/app.js", content=APP)
    agent.do("write_file", path="site/check.py", content=CHECK)
    agent.shell(f"cd site && npm install --registry {npm.url}/ --no-audit --no-fund greet-thing")
    agent.shell(f"cd site && /usr/bin/python3 -m pip install -q --no-input --trusted-host 127.0.0.4 --index-url {index.url}/simple/ --target packages wordthing")
    tested = agent.shell("cd site && PYTHONPATH=packages /usr/bin/python3 check.py 2>&1")
    assert "OK" in tested, tested
    big = 3_000_000  # more than git sends in one piece
    agent.shell(f"cd site && git checkout -q -b main; printf 'node_modules\\npackages\\n' > .gitignore; head -c {big} /dev/urandom > data && git add . && git commit -qm 'begin' && "
                "git push -q origin main")
    assert str(big) in agent.shell(f"git clone -q {git.url}/site.git again && wc -c < again/data")

    page = browse(agent.server, "/")
    page.is_watched = False
    job, url = agent.serve(8080)
    page.driver.get(url)
    page.until(lambda: page.css("#said")[0].text == "hello developer", "the page of the dev server")
    agent.do("stop_job", job_id=job)
    agent.do("edit_file", path="site/app.js", old_text='"developer"', new_text='"everybody"')
    page.driver.get(agent.serve(8080)[1])
    page.until(lambda: page.css("#said")[0].text == "hello everybody", "the changed page")
    agent.shell("cd site && git commit -qam 'greet everybody' && git push -q origin main && git status --short")

    assert agent.asked == ["127.0.0.2", "127.0.0.4"] + [SERVE] * (mode == "auto")
    said = subprocess.run(["git", "-C", repositories / "site.git", "log", "--format=%an <%ae> %s", "main"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["Ada <ada@example.com> greet everybody", "Ada <ada@example.com> begin"]
    subprocess.run(["git", "clone", "-q", repositories / "site.git", tmp_path / "again"], check=True)
    assert (tmp_path / "again" / "data").stat().st_size == big
    assert sorted(each.name for each in (tmp_path / "again").iterdir()) == [".git", ".gitignore", "app.js", "check.py", "data", "package-lock.json", "package.json"]
