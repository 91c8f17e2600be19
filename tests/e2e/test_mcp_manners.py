"""Random misbehaving MCP servers: none ends our server, loses the result of a completed action, or fails another tool's call.

REPRISE_MANNERS is their number (40; 200 in the long form), REPRISE_MANNERS_SEED repeats a run."""
import os
import pathlib
import random
import sys

import pytest
from support import mcp_manners
from support.mcp import server_of
from support.mcp_manners import Manner, MannersWeb
from support.provider import call, text, tools
from support.timing import SLACK, eventually

COUNT = int(os.environ.get("REPRISE_MANNERS", "40"))
TOGETHER = 20
SEED = os.environ.get("REPRISE_MANNERS_SEED") or str(random.randrange(10**9))
CALM = server_of('{"name": "calm", "inputSchema": {"type": "object"}}', '"all is well"')


def configuration(manner, web):
    if manner.over_http:
        return {"url": web.address(manner)}
    return {"command": sys.executable, "args": ["-S", str(pathlib.Path(mcp_manners.__file__)), SEED, str(manner.index)]}


@pytest.mark.limit(240)
@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_servers_of_bad_manners_end_nothing_and_lose_nothing(first, make_server, provider):
    print(f"REPRISE_MANNERS_SEED={SEED}")
    manners = [Manner(SEED, index) for index in range(first, min(first + TOGETHER, COUNT))]
    web = MannersWeb([manner for manner in manners if manner.over_http])
    try:
        servers = {f"m{manner.index}": configuration(manner, web) for manner in manners} | {"good": CALM}
        server = make_server(provider, config={"approval_mode": "approve_all", "mcpServers": servers})
        client = server.client

        def states():
            return {each["name"]: each for each in client.get("/tools").expect(200, "tools").json["servers"]}

        eventually(lambda: all(each["state"] != "connecting" for each in states().values()), "all have answered", 60 * SLACK)
        assert all(each["state"] == "ready" for each in states().values()), states()
        counts = {}
        for n in (1, 2, 3):
            for manner in manners:
                counts[manner.index] = counts.get(manner.index, 0) + 1
                arguments = {"n": n, **({"note": None} if manner.null_note else {})}
                provider.plan(tools(call(f"m{manner.index}__act", arguments, f"a{manner.index}_{n}"), call("good__calm", {}, f"b{manner.index}_{n}")), text("done"))
                stream = client.start(f"c{manner.index}", f"turn {n}")
                stream.finish()
                results = {each["tool_name"]: each for each in stream.all("tool_result")}
                acted, calm = results[f"m{manner.index}__act"], results["good__calm"]
                assert calm["tool_output"] == "all is well" and not calm["is_error"], f"{manner}\n{calm}"
                # The server counts its calls, so a right count shows that it is the same process, or session, as before.
                assert manner.is_fine(n, counts[manner.index], acted), f"{manner}\n{acted['tool_output'][:500]}"
        assert all(each["state"] == "ready" for each in states().values()), states()
        assert server.process.poll() is None
    finally:
        web.close()
