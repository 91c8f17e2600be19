"""A chat that was recorded with a prompt folder, project instructions and a skill, to be compared with the agent of a later time."""
import json

from support import anthropic, responses
from support.provider import Provider, call, text, tools
from support.server import API_KEY, Home, Server, reprise


def answers(kind):
    """A call and an answer, in the form of that provider."""
    arguments = {"path": "otter.txt", "content": "An otter.\n"}
    if kind == "anthropic":
        return [anthropic.message(anthropic.use("write_file", arguments)), anthropic.message(anthropic.say("Written."))]
    if kind == "openai_responses":
        return [responses.message(responses.use("write_file", arguments)), responses.message(responses.say("Written."))]
    return [tools(call("write_file", arguments, "call_1")), text("Written.")]


class Recorded:
    """Its home, its chat c, and the configuration that it was recorded with."""

    def __init__(self, path, kind):
        self.provider = Provider()
        self.home = Home(path)
        self.kind = kind
        base = self.provider.url.removesuffix("/v1") if kind == "anthropic" else self.provider.url
        self.config = {"providers": {"one": {"type": kind, "base_url": base, "api_key": API_KEY}}, "model": "one/scripted",
                       "models": {"one/scripted": {"context_window": 200_000}}}
        self.prompt = self.home.path / "prompt"
        self.prompt.mkdir()
        self.write("prompt/15-voice.md", "Write short sentences.\n\nNo lists.\n")
        self.write("prompt/95-last.md", "Ask if something is unclear.\n")
        self.write("workspace/AGENTS.md", "# Otters\n\nBuild with make.\nTest with make check.\n")
        self.skill("release", "Makes a release.")
        self.home.trust("workspace/AGENTS.md", "--workspace", self.home.workspace)
        self.provider.plan(*answers(kind))
        server = Server(self.home, config=self.config, arguments=["--prompt-dir", self.prompt])
        server.client.turn("c", "Write about an otter.", approval_mode="approve_all")
        server.close()

    def write(self, name, words):
        path = self.home.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
        path.chmod(0o600)

    def skill(self, name, description):
        self.write(f"home/.agents/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: {description}\n---\nSteps.\n")

    def run(self, command, *arguments, config=None):
        """Runs a command as somebody would who has this configuration now."""
        self.write("now.json", json.dumps(config or self.config))
        return reprise(self.home, command, *arguments, "--data-dir", self.home.data, "--workspace", self.home.workspace, "--config", "now.json", "--prompt-dir", self.prompt)

    def replay(self, config=None, arguments=()):
        status, output, messages = self.run("replay", "c", "--input", "current", "--json", *arguments, config=config)
        assert status in (0, 1) and messages == "", (status, output, messages)
        report = json.loads(output)
        assert report["match"] and report["requests"] in (0, 2), report
        assert (status == 0) == (report["drift"] == []), report
        return report["drift"]
