"""Images, documents and recordings: sent as blocks to models that accept them, as text to others; hostile files; files made by tools."""
import base64
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest
from support import anthropic, documents, responses
from support.provider import Reply, call, failure, text, tools, wav
from support.server import API_KEY, BINARY, processes, sandbox_works
from support.timing import SLACK, SOON, eventually

ALL = {"images": True, "pdf": True, "audio": True}
NONE = {"images": False, "pdf": False, "audio": False}
PNG = documents.png()
PDF = documents.pdf(["The first page tells of herons", "and the second of otters"])

in_a_sandbox = pytest.mark.skipif(not sandbox_works(), reason="documents are read in a sandbox, and none works here")


def serve(make_server, provider, kind="openai", abilities=None, home=None, environment=None, **config):
    base = provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url
    one = {"type": kind, "base_url": base, "api_key": API_KEY}
    return make_server(home=home, environment=environment or {}, config={
        "providers": {"one": one}, "model": "one/scripted",
        "models": {"one/scripted": {"abilities": ALL if abilities is None else abilities}, "one/plain": {"abilities": NONE}}, **config})


def upload(client, content, name, kind, chat="c"):
    return client.request("POST", f"/chats/{chat}/files?name={name}", content, headers={"Content-Type": kind}).expect(201, "chat_file").json


def asks(client, *files, message="what is it?", **more):
    return client.turn("c", message, attachments=[f["id"] for f in files], **more)


def encoded(content):
    return base64.b64encode(content).decode()


def data_url(kind, content):
    return f"data:{kind};base64,{encoded(content)}"


def reprise(home, *arguments):
    done = subprocess.run([str(BINARY), *map(str, arguments), "--data-dir", str(home.data)], env=home.environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=SOON * 2, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def user_text(provider):
    """The text of the user's last message, whatever its form."""
    body = provider.requests[-1].body
    content = [m for m in body.get("messages") or body["input"] if m.get("role") == "user"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# --- as blocks of their own -------------------------------------------------------------------------------------------

def test_chat_completions_get_an_image_a_pdf_and_a_recording(make_server, provider):
    server = serve(make_server, provider)
    image = upload(server.client, PNG, "heron.png", "application/octet-stream")  # the type is detected from the bytes
    paper = upload(server.client, PDF, "paper.pdf", "application/pdf")
    sound = upload(server.client, wav(), "talk.wav", "audio/wav")
    provider.plan(text("A heron."), text("Again."))
    stream = asks(server.client, image, paper, sound)
    content = provider.requests[0].conversation[-1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "file", "input_audio"]
    assert content[0]["text"].startswith("what is it?\n\n[Attached files") and image["id"] in content[0]["text"]
    assert content[1] == {"type": "image_url", "image_url": {"url": data_url("image/png", PNG)}}
    assert content[2] == {"type": "file", "file": {"filename": "paper.pdf", "file_data": data_url("application/pdf", PDF)}}
    assert content[3] == {"type": "input_audio", "input_audio": {"format": "wav", "data": encoded(wav())}}
    assert [f["filename"] for f in stream.one("interaction_started")["attachments"]] == ["heron.png", "paper.pdf", "talk.wav"]
    assert not any("note" in f for f in stream.one("interaction_started")["attachments"]), "the model got the whole file"
    # The next request begins with the same bytes, for the provider's cache.
    server.client.turn("c", "and now?")
    first, second = (json.dumps(r.body["messages"])[:-1] for r in provider.requests)
    assert second.startswith(first)


def test_responses_get_an_image_and_a_pdf(make_server, provider):
    server = serve(make_server, provider, "openai_responses")
    provider.plan(responses.message(responses.say("A heron.")))
    asks(server.client, upload(server.client, PNG, "heron.png", "image/png"), upload(server.client, PDF, "paper.pdf", "application/pdf"))
    content = provider.requests[0].body["input"][-1]["content"]
    assert content[1:] == [{"type": "input_image", "detail": "auto", "image_url": data_url("image/png", PNG)},
                           {"type": "input_file", "filename": "paper.pdf", "file_data": data_url("application/pdf", PDF)}]


def test_anthropic_gets_an_image_and_a_pdf(make_server, provider):
    server = serve(make_server, provider, "anthropic")
    provider.plan(anthropic.message(anthropic.say("A heron.")))
    asks(server.client, upload(server.client, PNG, "heron.png", "image/png"), upload(server.client, PDF, "paper.pdf", "application/pdf"))
    content = provider.requests[0].body["messages"][-1]["content"]
    assert content[1] == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded(PNG)}}
    assert content[2] == {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": encoded(PDF)},
                          "title": "paper.pdf", "cache_control": {"type": "ephemeral"}}


# --- what is kept -------------------------------------------------------------------------------------------------------

def test_the_state_names_files_and_edits_replays_forks_and_copies_keep_them(make_server, make_home, provider):
    server = serve(make_server, provider)
    image = upload(server.client, documents.png(noise=os.urandom(100_000)), "heron.png", "image/png")
    again = upload(server.client, documents.png(noise=os.urandom(10)), "other.png", "image/png")
    same = server.client.request("POST", f"/chats/c/files?name=other.png", server.client.get(f"/chats/c/files/{again['id']}").body,
                                 headers={"Content-Type": "image/png"}).expect(201, "chat_file").json
    assert same == again, "the same file is stored once"
    provider.answer_with(lambda request: text("A heron."))
    first = asks(server.client, image).interaction
    state = server.client.interaction("c", first)["final_agent_state"]
    part = state["messages"][0]["content"][1]
    assert part == {"type": "image", "file_id": image["id"], "mime_type": "image/png", "filename": "heron.png", "size_bytes": image["size_bytes"],
                    "tokens": part["tokens"]}
    assert len(json.dumps(state)) < 2000
    url = provider.requests[-1].conversation[-1]["content"][1]
    server.client.edit("c", first, "what bird?").finish()
    assert provider.requests[-1].conversation[-1]["content"][1] == url
    replay = server.client.post(f"/chats/c/interactions/{first}/replay", {"mode": "recorded"})
    assert replay.status == 200 and json.loads(replay.body)["divergence"] is None, replay.body
    fork = server.client.post("/chats/c/fork", {"interaction_id": first}).expect(201).json["id"]
    server.client.turn(fork, "and there?")
    assert provider.requests[-1].conversation[0]["content"][1] == url
    out = server.home.path / "out"
    reprise(server.home, "export", "-o", out)
    other = serve(make_server, provider)
    reprise(other.home, "import", out)
    other.client.turn(fork, "and here?")
    assert provider.requests[-1].conversation[0]["content"][1] == url
    assert f"[heron.png, image/png, {image['size_bytes']} bytes]" in reprise(server.home, "show", "c")
    markdown = server.client.get("/chats/c/export?format=markdown").body.decode()
    assert f"[heron.png, image/png, {image['size_bytes']} bytes]" in markdown
    # The model is told that a file is gone, and the chat continues.
    server.client.request("DELETE", f"/chats/{fork}/files/{image['id']}").expect(200)
    server.client.turn(fork, "still there?")
    assert "cannot be sent: " in json.dumps(provider.requests[-1].conversation[0])


def test_another_model_gets_what_it_takes(make_server, provider):
    server = serve(make_server, provider)
    provider.answer_with(lambda request: text("Yes."))
    image = upload(server.client, PNG, "heron.png", "image/png")
    assert asks(server.client, image, model="one/plain").one("interaction_started")["attachments"][0]["note"] == "not sent: the model takes no images"
    assert "cannot be shown to you: the model takes no images" in user_text(provider)
    server.client.turn("c", "and now?")
    assert provider.requests[-1].conversation[0]["content"][1]["type"] == "image_url", "a model that accepts images gets earlier attachments"
    server.client.turn("c", "and now?", model="one/plain")
    assert isinstance(provider.requests[-1].conversation[0]["content"], str)
    other = serve(make_server, provider, abilities={})
    file = upload(other.client, PNG, "heron.png", "image/png")
    assert "not known whether the model takes images" in asks(other.client, file).one("interaction_started")["attachments"][0]["note"]


# --- as text --------------------------------------------------------------------------------------------------------------

TEXTS = [("paper.pdf", "application/pdf", PDF, ["tells of herons", "of otters"]),
         ("letter.docx", documents.DOCX, documents.docx("Dear heron,\nthe pond is yours"), ["Dear heron,\nthe pond is yours\nleft \tright"]),
         ("costs.xlsx", documents.XLSX, documents.xlsx([["Fish", "Price"], ["Trout", 3.5]]), ["--- Sheet Costs ---\nFish\tPrice\nTrout\t3.5"]),
         ("talk.pptx", documents.PPTX, documents.pptx(["Birds", "Fish"]), ["--- Slide 1 ---\nBirds", "--- Slide 2 ---\nFish"]),
         ("brief.odt", documents.ODT, documents.odt("Lieber Reiher\nsei gegr\u00fc\u00dft"), ["Lieber Reiher\nsei gegr\u00fc\u00dft"]),
         ("online.docx", documents.DOCX, documents.named_docx("word/document2.xml", "from a browser", footnotes="below"),
          ["from a browser\n\n--- Footnotes ---\nbelow"]),
         ("boxes.docx", documents.DOCX, documents.docx("A box:" + documents.alternatives("in the box", "in the box, for old programs") + "The end"),
          ["A box:in the boxThe end"]),
         ("marked.html", "text/html", ("\ufeff<html><meta charset='iso-8859-1'>" + "<!-- -->" * 9000 + "<p>Th\u00e9 pond</html>").encode("utf-16-le"), ["Th\u00e9 pond\n"]),
         ("big.html", "text/html", "\ufeff<html><p>Th\u00e9 pond</html>".encode("utf-16-be"), ["Th\u00e9 pond\n"]),
         ("other.html", "text/html", "<html><meta charset='iso-8859-1'><p>Th\u00e9 pond</html>".encode(), ["Th\u00e9 pond\n"]),
         ("order.pptx", documents.PPTX, documents.shuffled_pptx(), ["--- Slide 1 ---\nfirst\n\nNotes:\nof the first\n\n--- Slide 2 ---\nsecond\n"]),
         ("parts.docx", documents.DOCX, documents.rich_docx("<w:p>" + documents.run("body") + "</w:p>", ("h1.xml", "header", "above"), ("h2.xml", "header", "above"),
          ("f1.xml", "footer", "below"), ("d1.xml", "diagramData", "in a diagram"), ("c1.xml", "chart", "Herons a year")),
          ["--- Header ---\nabove\n\n--- Text ---\nbody\n\n--- Diagram ---\nin a diagram\n\n--- Chart ---\nHerons a year\n\n--- Footer ---\nbelow\n"]),
         ("shown.docx", documents.DOCX, documents.rich_docx(
             f"<w:p><w:moveFrom>{documents.run('moved away')}</w:moveFrom>{documents.run('non')}<w:r><w:noBreakHyphen/></w:r>{documents.run('stop ')}"
             f"{documents.run('hidden', '<w:vanish/>')}{documents.run('seen ', '<w:vanish w:val=&quot;0&quot;/>'.replace('&quot;', chr(34)))}"
             f"<w:r><w:ruby><w:rt>{documents.run('reading')}</w:rt><w:rubyBase>{documents.run('word')}</w:rubyBase></w:ruby></w:r></w:p>"
             "<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val='restart'/></w:tcPr><w:p>" + documents.run("one") + "</w:p></w:tc></w:tr>"
             "<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p>" + documents.run("covered") + "</w:p></w:tc><w:tc><w:p>" + documents.run("two") + "</w:p></w:tc></w:tr></w:tbl>"),
          ["non\u2011stop seen word\none\n\ttwo\n"]),
         ("days.xlsx", documents.XLSX, documents.styled_xlsx([("17816.607951388887", "d-mmm-yyyy h:mm"), ("0.125", "0.0%"), ("1234567.891", "#,##0.00"), ("0.1", "General")]),
          ["--- Sheet Days (hidden) ---\n11-Oct-1952 14:35\t12.5%\t1,234,567.89\t0.1\n\nComments:\nB1: late\n\nText boxes:\nin a box\n\nChart:\nHerons a year\n"]),
         ("tracked.odt", documents.ODT, documents.open_document(
             "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:p>kept<text:s text:c='2'/><text:note><text:note-citation>1</text:note-citation>"
             "<text:note-body><text:p>a note</text:p></text:note-body></text:note><office:annotation><dc:creator>Ann</dc:creator><text:p>a comment</text:p></office:annotation> text</text:p></office:text>",
             "<style:header><text:p>above</text:p></style:header>"),
          ["kept  [1] text\n\n--- Notes ---\n[1] a note\n\n--- Comments ---\na comment\n\n--- Header and footer ---\nabove\n"]),
         ("repeated.ods", documents.ODT, documents.open_document(
             "<office:spreadsheet><table:table table:name='T'><table:table-row table:number-rows-repeated='2'><table:table-cell table:number-columns-repeated='2'><text:p>x</text:p></table:table-cell>"
             "<table:table-cell table:number-columns-repeated='3'/><table:covered-table-cell/><table:table-cell><text:p>y</text:p></table:table-cell></table:table-row>"
             "<table:table-row table:number-rows-repeated='1048574'><table:table-cell table:number-columns-repeated='16384'/></table:table-row></table:table></office:spreadsheet>"),
          ["--- Table T ---\nx\tx\t\t\t\t\ty\nx\tx\t\t\t\t\ty\n\n-"]),
         ("code.html", "text/html", b"<section>One</section><section>Two</section><ul><li><div>item</div></li></ul><pre>def f():\n    return  1\n\n\nx<br>y</pre>",
          ["One\n\nTwo\n", "- item\n", "def f():\n    return  1\n\n\nx\ny\n"]),
         ("utf16.txt", "text/plain", "\ufeffTh\u00e9 pond \U0001f426\r\nis deep".encode("utf-16-le"), ["Th\u00e9 pond \U0001f426\nis deep\n"]),
         ("unmarked.log", "text/plain", "the pond is deep\n".encode("utf-16-be"), ["the pond is deep\n"]),
         ("ansi.csv", "text/csv", "name;price\r\ncaf\u00e9;5 \u20ac\r\nth\u00e9 \u201cdeep pond\u201d;3".encode("cp1252"), ["name;price\ncaf\u00e9;5 \u20ac\nth\u00e9 \u201cdeep pond\u201d;3\n"]),
         ("page.html", "text/html", "<html><title>Pond</title><script>x()</script><p>Th\u00e9 pond <b>is</b> deep</html>".encode(), ["Pond\n", "Th\u00e9 pond is deep"])]


@in_a_sandbox
@pytest.mark.parametrize("name, kind, content, words", TEXTS, ids=[each[0] for each in TEXTS])
def test_documents_as_text(make_server, provider, name, kind, content, words):
    server = serve(make_server, provider, abilities=NONE)
    file = upload(server.client, content, name, kind)
    provider.plan(tools(call("read_chat_file", {"file_id": file["id"]})), text("Well."))
    stream = asks(server.client, file)
    assert "note" not in stream.one("interaction_started")["attachments"][0]
    told = user_text(provider)
    assert re.search(rf"\n\[{file['id']}, \"{name}\", as text\]\n----- begin {file['id']} -----\n", told)
    assert all(word in told for word in words), told
    assert words[0].split("\n")[0] in stream.one("tool_result")["tool_output"]
    assert len(json.dumps(server.client.interaction("c", stream.interaction)["final_agent_state"]["messages"][0])) < 900, "the text is not stored twice"


CUT = "\n[cut here: the document has more text than 4 MiB]\n"


LONG = {"docx": lambda lines: documents.docx("\n".join(lines)),
        "html": lambda lines: "<p>".join(["", *lines]).encode(),
        "pdf": lambda lines: documents.pdf(["\n".join(lines[i:i + 50]) for i in range(0, len(lines), 50)])}


@in_a_sandbox
@pytest.mark.parametrize("kind", LONG)
def test_a_text_beyond_the_limit_is_cut_with_a_note(make_server, provider, kind):
    server = serve(make_server, provider, abilities=NONE)
    birds = random.Random(1)
    lines = [" ".join(birds.choices(["heron", "otter", "pond", "reed"], k=15)) for _ in range(75_000)]
    file = upload(server.client, LONG[kind](lines), f"long.{kind}", "application/octet-stream")
    provider.plan(tools(call("read_chat_file", {"file_id": file["id"], "offset": 1_000_000})), text("Well."))
    said = asks(server.client, file).one("tool_result")["tool_output"]
    last = int(re.search(r"it has only (\d+) lines", said).group(1))
    provider.plan(tools(call("read_chat_file", {"file_id": file["id"], "offset": last - 1})), text("Well."))
    assert asks(server.client).one("tool_result")["tool_output"].endswith(CUT)


HOSTILE = [("bomb.docx", documents.docx("x", **{"word/media/image1.bin": b"\0" * (40 << 20)}), "200 times as large"),
           ("entities.docx", documents.docx("&c;", head="<!DOCTYPE d [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'><!ENTITY c '&b;&b;'>]>"), "declares a document type"),
           ("outside.docx", documents.docx("x", head="<!DOCTYPE d [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"), "declares a document type"),
           ("nested.docx", documents.archive({"inner.docx": documents.docx("deep")}), "none of the documents that are known"),
           ("cut.docx", documents.docx("x")[:-40], "no ZIP archive"),
           ("not.xlsx", b"\xd0\xcf\x11\xe0 an old one", "no ZIP archive"),
           ("broken.pdf", b"%PDF-1.7\n\xff\xfe nothing more", "damaged, or encrypted"),
           ("locked.docx", documents.locked(documents.docx("x")), "it is encrypted"),
           ("link.docx", documents.linked("word/document.xml", "/etc/passwd"), "its XML is damaged"),
           ("deep.docx", documents.docx("<w:t>" * 100_000 + "</w:t>" * 100_000), "its XML is damaged"),
           ("password.pdf", documents.encrypted_pdf(), "damaged, or encrypted with a password"),
           ("cut.pdf", documents.pdf(["a page"] * 20)[:2000], "damaged, or encrypted"),
           ("many.docx", documents.archive({f"e{i}": "" for i in range(20_100)}, compress=False), "more than 20000 entries")]


@in_a_sandbox
@pytest.mark.parametrize("name, content, why", HOSTILE, ids=[each[0] for each in HOSTILE])
def test_what_cannot_be_read_is_told_by_name_and_reason(make_server, provider, name, content, why):
    server = serve(make_server, provider, abilities=NONE)
    provider.plan(text("I cannot read it."))
    stream = asks(server.client, upload(server.client, content, name, "application/octet-stream"))
    assert why in stream.one("interaction_started")["attachments"][0]["note"]
    assert f'"{name}", cannot be read: ' in user_text(provider) and why in user_text(provider)


def test_what_no_model_takes_is_not_sent(make_server, provider):
    """The type is detected from the bytes, because a provider would refuse the whole request, and every later one in the chat."""
    server = serve(make_server, provider)
    given = [("cut.png", "image/png", PNG[:-20], "not sent: it is cut short"),
             ("cut.jpg", "image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF", "not sent: it is cut short"),
             ("vast.png", "image/png", documents.vast_png(60_000, 60_000), "not sent: it has 60000 x 60000 pixels, and models take images of up to 8000 a side"),
             ("nothing.pdf", "application/pdf", b"", "it is empty"),
             ("film.mp4", "video/mp4", b"\0\0\0\x18ftypmp42\0\xff", "not sent: it is no UTF-8 text, and of no type that models take or whose text can be read"),
             ("words.docx", documents.DOCX, b"words alone", ""),
             ("heron.pdf", "application/pdf", PNG, ""), ("paper.png", "image/png", PDF, "")]
    provider.plan(text("Well."))
    stream = asks(server.client, *[upload(server.client, content, name, kind) for name, kind, content, _ in given])
    assert [f.get("note", "") for f in stream.one("interaction_started")["attachments"]] == [note for *_, note in given]
    content = provider.requests[-1].conversation[-1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "file"] and content[2]["file"]["filename"] == "paper.png"
    assert "words alone" in content[0]["text"] and content[0]["text"].count("cannot be shown to you: it is cut short") == 2


@pytest.mark.parametrize("status", [400, 413])
def test_a_provider_that_refuses_a_file_is_asked_again_without_it(make_server, provider, status):
    server = serve(make_server, provider)
    image = upload(server.client, PNG, "heron.png", "image/png")
    provider.plan(failure(status, "Could not process image"), text("I cannot see it."), failure(status, "Could not process image"), text("Still not."))
    stream = asks(server.client, image)
    assert "Could not process image" in stream.one("retry")["message"] and stream.one("retry")["delay_ms"] == 0
    assert "refused the request" in user_text(provider) and "heron.png" in user_text(provider)
    server.client.turn("c", "and now?")
    assert len(provider.requests) == 4 and provider.requests[2].conversation[0]["content"][1]["type"] == "image_url"
    # Without a file a refusal is final.
    provider.plan(failure(400, "no such parameter"))
    assert server.client.turn("d", "hello", status="FAILED").one("error")["code"] == "provider_bad_request"


def test_files_are_kept_once_and_sealed_and_sent_after_a_restart_and_an_edit(make_server, make_home, provider):
    home = make_home()
    server = serve(make_server, provider, home=home)
    noise = os.urandom(200_000)
    picture = documents.png(noise=noise)
    image = upload(server.client, picture, "heron.png", "image/png")
    provider.answer_with(lambda request: text("A heron."))
    first = asks(server.client, image).interaction
    server.client.turn("c", "and now?")
    server.stop()
    server = serve(make_server, provider, home=home)
    upload(server.client, picture, "heron.png", "image/png")
    server.client.turn("c", "and after a restart?")
    sent = provider.requests[-1].conversation[0]["content"][1]
    assert sent == {"type": "image_url", "image_url": {"url": data_url("image/png", picture)}}
    server.client.edit("c", first, "what bird?").finish()
    assert provider.requests[-1].conversation[-1]["content"][1] == sent
    kept = [path.read_bytes() for path in home.data.rglob("*") if path.is_file()]
    assert 200_000 < sum(len(each) for each in kept) < 2 * 200_000 * 4 / 3, "once"
    assert not any(noise[:60] in each or base64.b64encode(noise[:60])[:-4] in each for each in kept)


@in_a_sandbox
def test_pages_that_are_packed_are_counted(make_server, provider):
    server = serve(make_server, provider)
    provider.answer_with(lambda request: text("Long."))
    asks(server.client, upload(server.client, documents.packed_pdf(100), "short.pdf", "application/pdf"))
    assert provider.requests[-1].conversation[-1]["content"][1]["type"] == "file"
    server.client.turn("d", "hello")
    long = upload(server.client, documents.packed_pdf(101), "long.pdf", "application/pdf", chat="d")
    server.client.turn("d", "what is it?", attachments=[long["id"]])
    assert isinstance(provider.requests[-1].conversation[-1]["content"], str) and "a heron" in user_text(provider), "a file of 101 pages is sent as text"


@in_a_sandbox
def test_guardrails_see_what_a_document_says(make_server, provider):
    server = serve(make_server, provider, abilities=NONE, guardrails={"input": ["secret pond"]})
    file = upload(server.client, documents.docx("to the secret pond"), "way.docx", documents.DOCX)
    server.client.post("/chats/c/interactions", {"user_message": "where?", "attachments": [file["id"]]}).error(400, "guardrail")
    assert not provider.requests


@in_a_sandbox
def test_names_in_an_archive_lead_nowhere(make_server, provider, tmp_path):
    server = serve(make_server, provider, abilities=NONE)
    target = tmp_path / "escaped"
    content = documents.archive({f"../../../../../../..{target}": "evil", str(target): "evil", "word/document.xml": "<a><p><t>harmless</t></p></a>"})
    provider.plan(text("Well."))
    asks(server.client, upload(server.client, content, "paths.docx", documents.DOCX))
    assert "harmless" in user_text(provider) and not target.exists()


@in_a_sandbox
def test_a_reader_that_hangs_and_one_that_looks_around(make_server, make_home, provider, tmp_path):
    """The reader is limited in time, leaves nothing behind, and sees none of the user's files."""
    home = make_home()
    secret = home.path / "secret"
    secret.write_text("the-heron-is-hidden")
    programs = tmp_path / "programs"
    programs.mkdir()
    reader = programs / "pdftotext"
    reader.write_text("#!/bin/sh\nsleep 71.5 & sleep 71.5\n")
    reader.chmod(0o755)
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    server = serve(make_server, provider, abilities=NONE, home=home, environment=path, files={"document_timeout_s": 1})
    provider.answer_with(lambda request: text("Well."))
    stream = asks(server.client, upload(server.client, PDF, "slow.pdf", "application/pdf"))
    assert stream.one("interaction_started")["attachments"][0]["note"] == "cannot be read: it takes longer than 1 seconds to read"
    eventually(lambda: not processes("sleep 71.5") and not processes("sleep\x0071.5"), "no process of the reader is left")
    reader.write_text(f"#!/bin/sh\ncat {secret} {home.data}/*/* /etc/shadow\nls -a {home.path} /root /home\n"
                      f"echo x > {home.path}/made || echo cannot write\n(exec 3<>/dev/tcp/127.0.0.1/{server.port}) 2>/dev/null && echo connected\nexit 0\n")
    asks(server.client, upload(server.client, documents.pdf(["another"]), "look.pdf", "application/pdf"))
    assert "cannot write" in user_text(provider) and "the-heron-is-hidden" not in user_text(provider) and "connected" not in user_text(provider)
    assert not (home.path / "made").exists()


class Watch:
    """Watches the processes of a program while the context lasts: their largest number and sizes."""
    def __init__(self, marker):
        self.marker, self.over, self.largest = marker, threading.Event(), 0
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def look(self):
        while not self.over.wait(0.05):
            for process in processes(self.marker):
                try:
                    status = open(f"/proc/{process}/status").read()
                except OSError:
                    continue
                self.largest = max(self.largest, *(int(kb) for kb in re.findall(r"VmHWM:\s*(\d+)", status)), 0)


ENDLESS = {"paths": lambda: documents.tangled_pdf(b"0 0 m 1 1 l S"), "text": lambda: documents.tangled_pdf(b"BT /F1 12 Tf 72 720 Td (heron) Tj ET"),
           "a page of 300 MB": documents.bomb_pdf}


@in_a_sandbox
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_pdf_that_hangs_its_reader(make_server, provider, figure, tmp_path, kind):
    """The real reader and a real file: there is an answer in bounded time and memory, and no process of the reader is left."""
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy(shutil.which("pdftotext"), programs)
    server = serve(make_server, provider, abilities=NONE, environment={"PATH": f"{programs}:{os.environ['PATH']}"}, files={"document_timeout_s": 2})
    provider.plan(text("I cannot read it."))
    content = ENDLESS[kind]()
    file = upload(server.client, content, "endless.pdf", "application/pdf")
    began = time.monotonic()
    with Watch(str(programs)) as watch:
        stream = asks(server.client, file)
    seconds = time.monotonic() - began
    note = stream.one("interaction_started")["attachments"][0]["note"]
    assert note in ("cannot be read: it takes longer than 2 seconds to read", "cannot be read: there is no text in it (its pages may be pictures)",
                    "cannot be read: the program that reads it has crashed over it")
    assert kind not in ("paths", "text") or "2 seconds" in note or "crashed" in note
    assert note in user_text(provider)
    figure(f"a PDF of {len(content)} bytes that hangs its reader: answered after {seconds:.1f} s, the reader had {watch.largest / 1024:.0f} MB at most, "
           f"the server {server.peak_memory_kb() / 1024:.0f} MB")
    assert seconds < 15 * SLACK and watch.largest < 800 * 1024
    eventually(lambda: not processes(str(programs)), "no process of the reader is left")


def test_where_no_program_reads_pdf_it_is_told(make_server, provider, tmp_path):
    server = serve(make_server, provider, abilities=NONE, environment={"PATH": str(tmp_path)})
    provider.plan(text("Well."))
    stream = asks(server.client, upload(server.client, PDF, "paper.pdf", "application/pdf"))
    assert "pdftotext is not installed" in stream.one("interaction_started")["attachments"][0]["note"]
    assert "pdftotext is not installed" in user_text(provider)


# --- large ones ----------------------------------------------------------------------------------------------------------

@in_a_sandbox
@pytest.mark.parametrize("abilities", [ALL, NONE], ids=["a model that takes PDF", "one that does not"])
def test_a_pdf_of_200_pages(make_server, provider, figure, abilities):
    server = serve(make_server, provider, abilities=abilities)
    began = time.monotonic()
    pages = [f"Page {i} of the long report\n" + "\n".join(f"line {n} with a few words about herons and their ponds" for n in range(40)) for i in range(1, 201)]
    provider.plan(text("Long."))
    stream = asks(server.client, upload(server.client, documents.pdf(pages), "long.pdf", "application/pdf"))
    note = stream.one("interaction_started")["attachments"][0]["note"]
    assert re.fullmatch(r"sent as text, the first 32768 of \d+ bytes", note), "providers accept 100 pages at most"
    assert "Page 1 of" in user_text(provider) and "read_chat_file reads the rest" in user_text(provider) and len(user_text(provider)) < 40_000
    figure(f"a PDF of 200 pages: answered after {time.monotonic() - began:.1f} s, the server had {server.peak_memory_kb() / 1024:.0f} MB at most")


@pytest.mark.large
def test_20_mb_of_images_within_bounded_memory(make_server, provider, figure):
    server = serve(make_server, provider)
    images = [upload(server.client, documents.png(noise=os.urandom(2_500_000)), f"{i}.png", "image/png") for i in range(8)]
    before = server.memory_kb()
    provider.answer_with(lambda request: text("Many."))
    asks(server.client, *images)
    content = provider.requests[-1].conversation[-1]["content"]
    assert [part["type"] for part in content[1:]] == ["image_url"] * 8
    sent = sum(len(part["image_url"]["url"]) for part in content[1:])
    peak = server.peak_memory_kb()
    figure(f"20 MB of images: a request of {sent / 1e6:.1f} MB, {before / 1024:.0f} MB resident before, {peak / 1024:.0f} MB at most")
    assert sent > 26_000_000
    assert peak - before < 160 * 1024 * min(SLACK, 3)
    # More would be too much for one request, so the oldest are described in text.
    more = [upload(server.client, documents.png(noise=os.urandom(2_500_000)), f"{i}.png", "image/png") for i in (8, 9)]
    asks(server.client, *more)
    first, last = provider.requests[-1].conversation[0]["content"], provider.requests[-1].conversation[-1]["content"]
    assert len(last) == 3 and len([part for part in first if part["type"] == "image_url"]) < 8
    assert "too large together" in first[0]["text"]


def test_limits_are_the_configurations(make_server, provider):
    server = serve(make_server, provider, files={"max_image_bytes": 200})
    provider.plan(text("No."))
    small, large = upload(server.client, PNG, "a.png", "image/png"), upload(server.client, documents.png(noise=b"x" * 300), "b.png", "image/png")
    notes = [f.get("note", "") for f in asks(server.client, small, large).one("interaction_started")["attachments"]]
    assert notes[0] == "" and notes[1] == f"not sent: it has {large['size_bytes']} bytes, and images of up to 200 are sent"


# --- what tools make -------------------------------------------------------------------------------------------------------

CAMERA = r"""
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = {"tools": [{"name": "shoot", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    elif request.get("method") == "tools/call":
        result = {"content": [{"type": "text", "text": "a picture"}, {"type": "image", "mimeType": "image/png", "data": "DATA"}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_an_image_of_an_mcp_tool(make_server, provider, kind):
    server = serve(make_server, provider, kind, approval_mode="approve_all", mcpServers={
        "camera": {"command": sys.executable, "args": ["-c", CAMERA.replace("DATA", encoded(PNG))], "trust_annotations": True}})
    eventually(lambda: any(t["name"] == "camera__shoot" for t in server.client.get("/tools").json["tools"]), "the tool is there")
    make = {"openai": lambda: (tools(call("camera__shoot", {})), text("A heron.")),
            "openai_responses": lambda: (responses.message(responses.use("camera__shoot", {})), responses.message(responses.say("A heron."))),
            "anthropic": lambda: (anthropic.message(anthropic.use("camera__shoot", {})), anthropic.message(anthropic.say("A heron.")))}[kind]
    provider.plan(*make())
    stream = server.client.turn("c", "shoot")
    result = stream.one("tool_result")
    [file] = result["files"]
    assert file["mime_type"] == "image/png" and file["size_bytes"] == len(PNG) and file["id"] in result["tool_output"]
    assert server.client.get(f"/chats/c/files/{file['id']}").body == PNG
    body = provider.requests[1].body
    if kind == "openai":
        shown = body["messages"][-1]
        assert body["messages"][-2]["role"] == "tool" and "a picture" in body["messages"][-2]["content"]
        assert shown["role"] == "user" and shown["content"][1] == {"type": "image_url", "image_url": {"url": data_url("image/png", PNG)}}
    elif kind == "openai_responses":
        output = body["input"][-1]["output"]
        assert [part["type"] for part in output] == ["input_text", "input_image"] and output[1]["image_url"] == data_url("image/png", PNG)
    else:
        [block] = body["messages"][-1]["content"]
        assert [part["type"] for part in block["content"]] == ["text", "image"] and block["content"][1]["source"]["data"] == encoded(PNG)


def test_an_image_of_the_workspace_and_one_of_the_chat(make_server, make_home, provider):
    home = make_home()
    (home.workspace / "heron.png").write_bytes(PNG)
    server = serve(make_server, provider, home=home)
    other = upload(server.client, documents.png(9, 9), "pond.png", "image/png")
    provider.plan(tools(call("read_file", {"path": "heron.png"}), call("read_chat_file", {"file_id": other["id"]}, "call_2")), text("Two."))
    stream = server.client.turn("c", "look")
    shown = provider.requests[1].conversation[-1]["content"]
    assert [part["image_url"]["url"] for part in shown[1:]] == [data_url("image/png", PNG), data_url("image/png", documents.png(9, 9))]
    assert [e["files"][0]["filename"] for e in stream.all("tool_result")] == ["heron.png", "pond.png"]
    assert len(server.client.get("/chats/c/files").json["files"]) == 2
    replay = server.client.post(f"/chats/c/interactions/{stream.interaction}/replay", {"mode": "recorded"})
    assert json.loads(replay.body)["divergence"] is None, replay.body


# --- recordings ------------------------------------------------------------------------------------------------------------

def test_a_recording_is_transcribed_for_a_model_that_takes_none(make_server, provider):
    server = serve(make_server, provider, abilities=NONE, audio={"transcription": "one/whisper-1"})
    provider.audio = Reply([json.dumps({"text": "meet me at the pond"}).encode()], content_type="application/json")
    provider.plan(text("At the pond."))
    asks(server.client, upload(server.client, wav(), "note.wav", "audio/wav"))
    assert "meet me at the pond" in user_text(provider) and "what is said in it" in user_text(provider)
    assert provider.heard[-1].body["model"][2] == b"whisper-1"
    # A model that accepts recordings accepts only some types.
    heard = serve(make_server, provider, audio={"transcription": "one/whisper-1"})
    provider.plan(text("At the pond."))
    asks(heard.client, upload(heard.client, b"OggS\0\2" + bytes(range(256)), "note.ogg", "application/octet-stream"))
    assert "meet me at the pond" in user_text(provider)
    silent = serve(make_server, provider, abilities=NONE)
    provider.plan(text("Hm."))
    note = asks(silent.client, upload(silent.client, wav(), "note.wav", "audio/wav")).one("interaction_started")["attachments"][0]["note"]
    assert note == "not sent: the model takes no recordings"


def test_a_recording_that_could_not_be_transcribed_is_told_so_and_tried_again(make_server, provider):
    server = serve(make_server, provider, abilities=NONE, audio={"transcription": "one/whisper-1"})
    provider.audio = failure(503, "too busy")
    provider.plan(text("Hm."), text("Hm."), text("At the pond."))
    file = upload(server.client, wav(), "note.wav", "audio/wav")
    note = asks(server.client, file).one("interaction_started")["attachments"][0]["note"]
    why = "it could not be transcribed: The model provider is overloaded (HTTP 503): too busy"
    assert note == f"not sent: {why}" and why in user_text(provider) and "could not be transcribed" in server.log() and "too busy" in server.log()

    def again():
        return server.client.post("/chats/c/interactions/int_001/regenerate", {"stream": False}).expect(200).json["attachments"]

    assert again()[0]["note"] == note and user_text(provider).count(why) == 1
    provider.audio = Reply([json.dumps({"text": "meet me at the pond"}).encode()], content_type="application/json")
    assert "note" not in again()[0]
    assert "what is said in it]\n----- begin" in user_text(provider) and "meet me at the pond" in user_text(provider) and "transcribed" not in user_text(provider)
