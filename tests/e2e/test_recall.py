"""recall: earlier turns of the chat, and with a person's approval those of other chats of its folder."""
from support.provider import call, text, tools

WINDOW = 8192


def recall(client, provider, chat, query, **arguments):
    provider.plan(tools(call("recall", {"query": query, **arguments}, "r")), text("ok"))
    return client.turn(chat, "look for it")


def test_what_was_summed_up_is_found_with_its_place(make_server, provider):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": WINDOW}}, "tools": {"allow": ["echo", "recall"]}})
    asking = []

    def answer(request):
        if not request.body.get("tools"):
            return text("They talked.")
        if request.last["content"] != "look for it":
            return text("a" * 3000)
        asking.append(str(request.messages))
        return tools(call("recall", {"query": "Database PORT"}, "r"))

    provider.plan(tools(call("echo", {"text": "the port of the staging database is 5433"}, "e")), text("noted"))
    server.client.turn("c", "remember the port")
    provider.answer_with(answer)
    for number in range(8):
        server.client.turn("c", f"question {number} " + "q" * 3000)
    stream = server.client.turn("c", "look for it")
    assert asking and "5433" not in asking[0], "the summary does not have it"
    result = stream.one("tool_result")
    best = result["tool_output"].split("\n\n")[0]
    made, ended = (next(e for e in server.client.interaction("c", "int_001")["agent_events"] if e["type"] == kind) for kind in ("TOOL_CALL", "TOOL_RESULT"))
    assert best.startswith(f"chat c, turn int_001, event {ended['seq']} (tool_result):\n") and "is 5433" in best and not result["is_error"]
    assert f"event {made['seq']} (tool_call)" in result["tool_output"]
    head = server.client.history("c")["head"]
    assert server.client.post(f"/chats/c/interactions/{head}/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_an_edit_takes_back_what_recall_finds(server, provider):
    client = server.client
    provider.plan(text("one"))
    client.turn("c", "start")
    provider.plan(text("the answer was pineapple"))
    client.turn("c", "what was it?")
    assert "pineapple" in recall(client, provider, "c", "pineapple").one("tool_result")["tool_output"]
    provider.plan(tools(call("recall", {"query": "pineapple"}, "r")), text("ok"))
    stream = client.edit("c", "int_002", "something else")
    stream.finish()
    assert stream.one("tool_result")["tool_output"] == "Nothing was found."


def test_other_chats_of_the_folder_ask_a_person(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home)
    client = server.client
    elsewhere = home.path / "elsewhere"
    elsewhere.mkdir()
    provider.plan(text("mango is the word"))
    client.turn("here", "say it")
    provider.plan(text("mango, too"))
    client.turn("there", "say it", workspace=str(elsewhere))
    assert recall(client, provider, "c", "mango").one("tool_result")["tool_output"] == "Nothing was found."
    provider.plan(tools(call("recall", {"query": "mango", "everywhere": True}, "r")), text("ok"))
    stream = client.start("c", "look everywhere")
    asked = stream.until("approval_required")
    assert asked["tool_name"] == "recall" and "other chats" in asked["reason"]
    client.approve("c", "int_002", asked["approval_id"]).expect(200)
    stream.finish()
    found = stream.one("tool_result")["tool_output"]
    assert found.startswith("chat here (say it), turn int_001, event ") and found.count("chat ") == 1


def test_odd_queries(client, provider):
    provider.plan(text("a (b) [c .* d"))
    client.turn("c", "say it")
    for query, words in [("(b) [c", "a (b) [c"), (".* zzz", ".*"), ("   ", "no words"), ("x" * 1000, "Nothing was found"), ("\u202e", "Nothing was found")]:
        output = recall(client, provider, "c", query).one("tool_result")["tool_output"]
        assert words in output, query
    provider.plan(tools(call("recall", {"query": ""}, "r"), call("recall", {}, "s")), text("ok"))
    assert all(r["is_error"] for r in client.turn("c", "x").all("tool_result"))
