"""Facts about models: from the configuration, from the provider's list, and built in."""
import json
import subprocess

from support.provider import Reply
from support.server import API_KEY, BINARY
from support.timing import SOON

ROUTER = {"id": "vendor/seer", "context_length": 9000, "architecture": {"input_modalities": ["text", "image"]},
          "supported_parameters": ["tools", "reasoning"], "pricing": {"prompt": "0.0000012", "completion": "0.000004", "input_cache_read": "0.0000001"}}
CLAUDE = {"type": "model", "id": "claude-next", "max_input_tokens": 70000, "max_tokens": 500,
          "capabilities": {"image_input": {"supported": True}, "pdf_input": {"supported": False}, "thinking": {"supported": True, "types": {}}}}


def listed(provider, *models):
    provider.listing = Reply([json.dumps({"data": models}).encode()], content_type="application/json")


def test_windows_prices_and_abilities(make_server, provider):
    one = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}
    listed(provider, ROUTER, CLAUDE, {"id": "gpt-4o"}, {"id": "mine", "supports_tools": True}, {"id": "bare"})
    server = make_server(config={"providers": {"one": one}, "model": "one/vendor/seer", "models": {
        "one/mine": {"context_window": 50, "abilities": {"tools": False, "pdf": True}, "input_price_per_mtok": 3, "output_price_per_mtok": 4}}})
    models = {m["name"]: m for m in server.client.get("/models").expect(200, "models").json["models"]}
    assert models["one/vendor/seer"] == {
        "name": "one/vendor/seer", "provider": "one", "context_window": 9000, "prices": {"input": 1.2, "output": 4, "cache_read": 0.1},
        "abilities": {"tools": True, "images": True, "pdf": False, "audio": False, "reasoning": True}}
    assert models["one/mine"] == {"name": "one/mine", "provider": "one", "context_window": 50, "prices": {"input": 3, "output": 4},
                                  "abilities": {"tools": False, "pdf": True}}
    assert models["one/gpt-4o"]["abilities"] == {"tools": True, "images": True, "pdf": True, "audio": False, "reasoning": False}
    assert models["one/bare"] == {"name": "one/bare", "provider": "one"}
    # The built-in facts of its family, and those of the list.
    assert models["one/claude-next"]["context_window"] == 70000
    assert models["one/claude-next"]["abilities"] == {"tools": True, "images": True, "pdf": False, "audio": False, "reasoning": True}
    assert models["offline"]["abilities"]["tools"] and not models["offline"]["abilities"]["images"]


def test_the_command_tells_them(make_server, make_home, provider):
    home = make_home()
    listed(provider, ROUTER)
    one = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}
    make_server(home=home, config={"providers": {"one": one}, "model": "one/vendor/seer"})
    done = subprocess.run([BINARY, "models", "--data-dir", home.data], cwd=home.path, env=home.environment(), capture_output=True, text=True,
                          timeout=SOON, check=True)
    seer = next(line for line in done.stdout.splitlines() if line.startswith("one/vendor/seer"))
    assert "9000 tokens" in seer and "tools, images, reasoning" in seer and "1.2/4 per million" in seer and "(default)" in seer
