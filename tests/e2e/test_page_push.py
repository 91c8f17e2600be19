"""The page and devices that are told: a device is paired in Settings, the service worker shows that something waits, and a tap opens its card."""
import json

import pytest
from support.provider import call, text, tools
from support.push import Device, PushService, decode
from support.timing import eventually

PRIVATE = {"push": {"allow_private_addresses": True}}

# A headless browser reaches no push service and shows no notifications. So this test's device is what the one answers, and what the others are asked is noted.
BROWSER = """
new BroadcastChannel('test').onmessage = (e) => void (window.notes = e.data);
Notification.requestPermission = async () => 'granted';
const device = %s, kept = () => localStorage.getItem('testSubscription') !== null;
const made = {endpoint: device.endpoint, toJSON: () => ({endpoint: device.endpoint, keys: {p256dh: device.p256dh, auth: device.auth}}),
  unsubscribe: async () => (localStorage.removeItem('testSubscription'), true)};
PushManager.prototype.subscribe = async (options) => {
  window.asked = {visible: options.userVisibleOnly, key: btoa(String.fromCharCode(...options.applicationServerKey))};
  localStorage.setItem('testSubscription', '1');
  return made;
};
PushManager.prototype.getSubscription = async () => (kept() ? made : null);
"""
WORKER = """
if (!self.notes) {
  self.notes = [];
  registration.getNotifications = async ({tag}) => notes.filter((each) => each.tag === tag);
  registration.showNotification = async (title, {body, tag, data, renotify}) => {
    notes = [...notes.filter((each) => !tag || each.tag !== tag), {title, body, tag, data, again: renotify}];
    new BroadcastChannel('test').postMessage(notes);
  };
}
"""


@pytest.fixture
def service():
    made = PushService()
    yield made
    made.close()


@pytest.fixture
def phone(service):
    return Device(f"{service.url}/phone")


@pytest.fixture
def paired(make_server, provider, browse, service, phone):
    """A server, and a page on it that is told."""
    server = make_server(provider, config=PRIVATE)
    page = browse(server)
    page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": BROWSER % json.dumps(phone.body())})
    page.driver.refresh()
    page.until(lambda: page.script("return navigator.serviceWorker.getRegistration().then((found) => found?.active?.state === 'activated')"), "the worker")
    page.press("tab-settings")
    page.press("tell-device")
    page.until(lambda: page.one("tell-device").is_selected(), "it is told")
    return server, page


def in_worker(page, expression):
    """Runs a script in the page's service worker, where no tap of a person can be made."""
    cdp = page.driver.execute_cdp_cmd
    page.script("return navigator.serviceWorker.ready.then((each) => each.active.postMessage('wake'))")
    targets = page.until(lambda: [each for each in cdp("Target.getTargets", {})["targetInfos"] if each["type"] == "service_worker" and each["url"].startswith(page.origin)], "the worker")
    session = cdp("Target.attachToTarget", {"targetId": targets[0]["targetId"], "flatten": False})["sessionId"]
    message = {"id": 1, "method": "Runtime.evaluate", "params": {"expression": expression, "awaitPromise": True, "userGesture": True}}
    cdp("Target.sendMessageToTarget", {"sessionId": session, "message": json.dumps(message)})


def shown(page):
    return page.script("return window.notes ?? []")


def arrive(page, message):
    in_worker(page, f"{WORKER}; show({message})")


def sent(told):
    return f"{{json: () => ({json.dumps(told)})}}"


def ask(server, provider, chat="secret-plans"):
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "canary"})), text("done"))
    stream = server.client.start(chat, "canary", on_disconnect="continue")
    asked = stream.until("approval_required")
    stream.close()
    return asked


def test_a_device_is_paired_told_and_let_go(paired, provider, service, phone):
    server, page = paired
    listed = server.client.get("/push/devices").json
    device, = listed["devices"]
    assert device["id"] == phone.id and "Chrome" in device["name"]
    asked = page.script("return window.asked")
    assert asked["visible"] and asked["key"].replace("+", "-").replace("/", "_").rstrip("=") == listed["public_key"]
    service.keys["phone"] = decode(listed["public_key"])
    ask(server, provider)
    assert phone.open(service.next()[2])["kind"] == "approval"
    page.driver.refresh()
    page.press("tab-settings")
    page.until(lambda: page.one("tell-device").is_selected(), "it is still told")
    # Others are listed, and can be removed from here.
    server.client.post("/push/devices", Device(f"{service.url}/tablet", "My <b>tablet</b>").body()).expect(200)
    page.driver.refresh()
    page.press("tab-settings")
    page.until_text("device", "My <b>tablet</b>")
    page.press("remove-device")
    page.gone("device")
    page.press("tell-device")
    page.until(lambda: not page.one("tell-device").is_selected(), "it is told no more")
    assert server.client.get("/push/devices").json["devices"] == []


def test_a_tap_opens_the_card_and_answers_once(paired, provider, service, phone):
    server, page = paired
    asked = ask(server, provider)
    told = phone.open(service.next()[2])
    arrive(page, sent(told))
    page.until(lambda: shown(page), "the notification")
    note = {"title": "Reprise", "body": "An approval is needed", "tag": told["chat"], "data": told, "again": False}
    assert shown(page) == [note]
    newer = {**told, "id": "approval_" + "0" * 32}
    arrive(page, sent(told))
    arrive(page, sent(newer))
    page.until(lambda: shown(page) == [{**note, "data": newer, "again": True}], "the newer one replaces it, and is heard")
    in_worker(page, f"open({json.dumps(told)})")
    page.until(lambda: page.script("return document.activeElement.dataset.approval") == asked["approval_id"], "its card has the focus")
    assert page.script("return location.hash") == "#secret-plans"
    page.press("approve")
    eventually(lambda: server.client.interaction("secret-plans", "int_001")["status"] == "COMPLETED", "it runs")
    assert (server.home.workspace / "out.txt").read_text() == "canary"
    # The same tap again, and one by the address that a closed page is opened with.
    page.press("tab-inbox")
    in_worker(page, f"open({json.dumps(told)})")
    page.until_text("toast", "It is no longer waiting")
    page.until(lambda: page.script("return location.hash") == "#secret-plans" and page.all("turn"), "its chat")
    page.open(f"/?kind=approval&id={told['id']}&chat={told['chat']}")
    page.until_text("toast", "It is no longer waiting")
    page.until(lambda: page.script("return location.search + location.hash") == "#secret-plans", "its chat, and an address without the tap")
    in_worker(page, "open({kind: 'ended', id: '', chat: '0'.repeat(32)})")
    page.one("inbox")


def test_a_tap_after_kill_9_opens_the_same_card(paired, make_server, provider, service, phone):
    server, page = paired
    asked = ask(server, provider, "c")
    told = phone.open(service.next()[2])
    server.kill()
    again = make_server(provider, home=server.home, config=PRIVATE, arguments=("--port", server.port))
    assert phone.open(service.next()[2]) == told
    page.open(f"/?kind=approval&id={told['id']}&chat={told['chat']}")
    page.until(lambda: page.script("return document.activeElement.dataset.approval") == asked["approval_id"], "its card has the focus")
    # Somebody else answers while it is on the screen: the answer from here is refused, or the card is gone.
    page.script("window.answers = []; const before = fetch; window.fetch = (...all) => before(...all).then((it) => (window.answers.push([all[0], all[1]?.body, it.status]), it))")
    page.press("approve")
    eventually(lambda: again.client.interaction("c", "int_001")["status"] == "COMPLETED", "it runs")
    path, body, status = page.until(lambda: [each for each in page.script("return window.answers") if "/approvals/" in each[0] and each[1]], "the answer")[0]
    assert status == 200 and json.loads(body)["arguments_digest"] == asked["arguments_digest"]


def test_what_nobody_can_read_is_shown_without_words_of_its_own(paired):
    _, page = paired
    for number, message in enumerate(("{json: () => { throw new Error() }}", "{json: () => null}", "null", "{json: () => ({kind: 'constructor', chat: 7, id: {}})}")):
        arrive(page, message)
        page.until(lambda many=number: len(shown(page)) == many + 1, "a notification")
    assert {each["body"] for each in shown(page)} == {"Something is waiting"}
