"""A headless Firefox, driven by WebDriver BiDi over a WebSocket, because Debian has no geckodriver. It has the operations of selenium that `Window` uses."""
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile

import pytest

from .browser import TEXT, WATCH, StaleElementReferenceException, Window
from .timing import SOON, eventually

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PATIENCE = 60  # seconds for an answer
# Nothing is fetched by the browser itself: not for its own sake, and not through a proxy.
PREFERENCES = {"network.proxy.type": 0, "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
               "browser.safebrowsing.malware.enabled": False, "browser.safebrowsing.phishing.enabled": False, "app.normandy.enabled": False,
               "extensions.update.enabled": False, "services.settings.server": "data:,", "datareporting.policy.dataSubmissionEnabled": False,
               "browser.shell.checkDefaultBrowser": False, "browser.aboutwelcome.enabled": False, "toolkit.telemetry.enabled": False,
               "extensions.getAddons.cache.enabled": False, "network.dns.disablePrefetch": True, "browser.startup.homepage_override.mstone": "ignore"}


class Socket:
    """A WebSocket (RFC 6455) that sends and receives texts."""

    def __init__(self, port, path):
        self.stream = socket.create_connection(("127.0.0.1", port), PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.stream.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def _read(self, size):
        data = b""
        while len(data) < size:
            part = self.stream.recv(size - len(data))
            assert part, "Firefox has closed the connection"
            data += part
        return data

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size) if size < 65536 else b"\xff" + struct.pack(">Q", size)
        masked = (int.from_bytes(data, "little") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "little")).to_bytes(size, "little")
        self.stream.sendall(b"\x81" + length + mask + masked)

    def receive(self):
        text = b""
        while True:
            first, second = self._read(2)
            size = second & 0x7f
            if size > 125:
                size = struct.unpack(">H", self._read(2))[0] if size == 126 else struct.unpack(">Q", self._read(8))[0]
            data = self._read(size)
            if first & 0x0f in (0, 1):
                text += data
            if first & 0x80 and first & 0x0f in (0, 1):
                return text.decode()


class Refusal(Exception):
    """An answer with an error."""


class Element:
    def __init__(self, driver, shared_id):
        self.driver = driver
        self.shared_id = shared_id

    def _do(self, script, *arguments):
        return self.driver.execute_script(script, self, *arguments)

    def find_elements(self, _, selector):
        return self._do("return [...arguments[0].querySelectorAll(arguments[1])]", selector)

    def find_element(self, by, selector):
        return self.find_elements(by, selector)[0]

    @property
    def text(self):
        return self._do(TEXT)

    def is_displayed(self):
        return self._do("const e = arguments[0], box = e.getBoundingClientRect();"
                        "return e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && box.width > 0 && box.height > 0")

    def is_enabled(self):
        return self._do("return !arguments[0].matches(':disabled')")

    def get_attribute(self, name):
        return self._do("const [e, name] = arguments; return name === 'value' ? e.value : e.getAttribute(name)", name)

    def click(self):
        self._do("arguments[0].scrollIntoView({block: 'nearest'})")
        origin = {"type": "element", "element": {"sharedId": self.shared_id}}
        self.driver.act({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]})

    def send_keys(self, *keys):
        if self._do("return arguments[0].type === 'file'"):
            files = {"context": self.driver.context, "element": {"sharedId": self.shared_id}, "files": list(keys)}
            return self.driver.call("input.setFiles", **files)
        self._do("const e = arguments[0]; if (document.activeElement !== e) { e.focus(); e.setSelectionRange?.(e.value.length, e.value.length); }")
        # As selenium: a key that is held stays so until the end.
        held = [key for key in keys if key in HELD]
        return self.driver.press_keys(held, [key for each in keys if each not in HELD for key in each])


HELD = "\ue008\ue009\ue00a\ue03d"  # Shift, Control, Alt, Meta


class Driver:
    def __init__(self, size):
        self.folder = tempfile.TemporaryDirectory(prefix="reprise-firefox-", ignore_cleanup_errors=True)
        profile = os.path.join(self.folder.name, "profile")
        os.mkdir(profile)
        with open(os.path.join(profile, "user.js"), "w") as file:
            file.writelines(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items())
        self.process = subprocess.Popen([FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"],
                                        env={**os.environ, "HOME": self.folder.name}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number = 0
        self.events = []
        try:
            self.socket = Socket(eventually(lambda: self._port(profile), "Firefox listens", 3 * SOON), "/session")
            self.call("session.new", capabilities={})
            self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
            self.call("session.subscribe", events=["network.beforeRequestSent"])
            self.set_window_size(*size)
        except BaseException:
            self.quit()
            raise

    @staticmethod
    def _port(profile):
        try:
            with open(os.path.join(profile, "WebDriverBiDiServer.json")) as file:
                return json.load(file)["ws_port"]
        except (FileNotFoundError, ValueError):
            return None

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message["type"] == "event":
                self.events.append(message)
            elif message.get("id") == self.number:
                break
        if message["type"] == "success":
            return message["result"]
        gone = message["error"] in ("no such node", "no such handle")
        raise StaleElementReferenceException(message["message"]) if gone else Refusal(f"{method}: {message['error']}: {message['message']}")

    # --- scripts
    def _local(self, value):
        if isinstance(value, Element):
            return {"sharedId": value.shared_id}
        if isinstance(value, bool) or value is None:
            return {"type": "null"} if value is None else {"type": "boolean", "value": value}
        if isinstance(value, (int, float)):
            return {"type": "number", "value": value}
        if isinstance(value, str):
            return {"type": "string", "value": value}
        return {"type": "array", "value": [self._local(each) for each in value]}

    def _value(self, remote):
        kind = remote["type"]
        if kind == "node":
            return Element(self, remote["sharedId"])
        if kind == "array":
            return [self._value(each) for each in remote["value"]]
        if kind == "object":
            return {name: self._value(each) for name, each in remote["value"]}
        return remote.get("value")

    def execute_script(self, text, *arguments):
        done = self.call("script.callFunction", functionDeclaration=f"function() {{ {text} }}", arguments=[self._local(each) for each in arguments],
                         target={"context": self.context}, awaitPromise=True)
        if done["type"] == "exception":
            raise Refusal(done["exceptionDetails"]["text"])
        return self._value(done["result"])

    def find_elements(self, _, selector):
        return self.execute_script("return [...document.querySelectorAll(arguments[0])]", selector)

    def find_element(self, by, selector):
        return self.find_elements(by, selector)[0]

    # --- hands
    def act(self, *sources):
        self.call("input.performActions", context=self.context, actions=list(sources))

    def press_keys(self, held, keys):
        actions = [{"type": "keyDown", "value": key} for key in held]
        for key in keys:
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.act({"type": "key", "id": "keys", "actions": actions + [{"type": "keyUp", "value": key} for key in reversed(held)]})

    # --- the window
    def get(self, url):
        self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def refresh(self):
        self.call("browsingContext.reload", context=self.context, wait="complete")

    @property
    def title(self):
        return self.execute_script("return document.title")

    def set_window_size(self, width, height):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height})

    def save_screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("browsingContext.captureScreenshot", context=self.context)["data"]))

    def quit(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


class Firefox(Window):
    """One window of a Firefox of its own."""

    def __init__(self, port, size=(1200, 900)):
        if not FIREFOX:
            pytest.skip("firefox-esr is not installed (scripts/deps browsers)")
        super().__init__(Driver(size), port)
        self.driver.call("script.addPreloadScript", functionDeclaration=f"() => {{ {WATCH} }}")

    def keys(self, *keys):
        self.driver.press_keys(keys[:-1], keys[-1])

    def _read_logs(self):
        self.messages += [{"message": each} for each in self.script("return window.breaches?.splice(0) ?? []")]
        self.requested |= {each["params"]["request"]["url"] for each in self.driver.events if each["method"] == "network.beforeRequestSent"}
        self.driver.events.clear()
