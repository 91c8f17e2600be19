"""A headless Chromium, driven as by a person: through what is visible and can be pressed."""
import json
import pathlib
import shutil
import urllib.parse

import pytest

from .timing import SLACK

PATIENCE = 30  # seconds
SCREENSHOTS = pathlib.Path("/tmp/reprise-screenshots")
selenium = pytest.importorskip("selenium", reason="python3-selenium is not installed")
from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import NoSuchElementException, NoSuchFrameException, NoSuchWindowException, StaleElementReferenceException, TimeoutException, UnexpectedAlertPresentException  # noqa: E402, F401
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common import utils  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

# The same engine without a browser's own windows, which starts in a third of the time.
SHELL = shutil.which("chromium-headless-shell")
CHROMIUM, DRIVER = SHELL or shutil.which("chromium"), shutil.which("chromedriver")


class Driver(Service):
    """Uses the driver's address, because a bare machine may not resolve localhost."""

    @property
    def service_url(self):
        return f"http://127.0.0.1:{self.port}"

    def is_connectable(self):
        return utils.is_connectable(self.port, "127.0.0.1")


def host_of(url):
    """The origin that a request goes to; None if it goes to no host."""
    parts = urllib.parse.urlsplit(url)
    return None if parts.scheme in ("data", "blob", "about", "chrome", "chrome-error") else f"{parts.scheme}://{parts.netloc}"


SIZE = (1200, 900)
# Drivers of this size, without hosts and flags of their own, left blank by a window that was closed: a start takes longer than most tests' use of it.
# A driver gives its first size to every new tab, so another size needs another driver.
IDLE = []


def end_idle():
    while IDLE:
        IDLE.pop().quit()


def is_plain(size, hosts, flags):
    return size == SIZE and not hosts and not flags


def start(size, hosts, flags):
    if not CHROMIUM or not DRIVER:
        pytest.skip("chromium and chromium-driver are not installed")
    if IDLE and is_plain(size, hosts, flags):
        return IDLE.pop()
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*(() if SHELL else ("--headless=new",)), "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
                     f"--window-size={size[0]},{size[1]}", *flags):
        options.add_argument(argument)
    rules = [f"MAP {name} {address}" for name, address in hosts.items()] + ["MAP * ~NOTFOUND", "EXCLUDE 127.*"]
    options.add_argument("--host-resolver-rules=" + ", ".join(rules))
    options.add_experimental_option("perfLoggingPrefs", {"enablePage": False})  # only requests are read
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Driver(DRIVER), options=options)


# Violations of the policy are read from the page, because a busy machine may lose lines of the browser's log.
WATCH = """const breaches = [];
Object.defineProperty(window, 'breaches', {value: breaches});
addEventListener('securitypolicyviolation', (e) => breaches.push(`Content Security Policy: ${e.effectiveDirective} ${e.blockedURI} ${e.sample}`), true);"""


# For drivers that have no good way of their own.
TEXT = "const e = arguments[0]; return e.checkVisibility({visibilityProperty: true}) ? e.innerText.trim() : ''"


class Window:
    """A browser's window on a server's page."""

    def __init__(self, driver, port):
        self.driver = driver
        self.origin = f"http://127.0.0.1:{port}"
        self.requested = set()
        self.messages = []
        self.is_watched = True  # turned off by tests whose window shows a stranger's page

    def open(self, path="/"):
        self.driver.get(self.origin + path)
        # The page is loaded before it is drawn. (Other front ends have pages of their own.)
        self.until(lambda: not self.css("#page") or self.css("#page > :not(.starting)"), "the page")
        return self

    # --- finding; a test id, or one with an attribute: "chat-item[data-chat=c]"
    @staticmethod
    def _selector(name):
        test_id, bracket, rest = name.partition("[")
        return f"[data-testid='{test_id}']{bracket}{rest}"

    def all(self, name, within=None):
        return (within or self.driver).find_elements(By.CSS_SELECTOR, self._selector(name))

    def css(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, look, what="it", limit=PATIENCE):
        """Waits until `look` returns something true. Returns that."""
        def once(_):
            try:
                return look()
            except (NoSuchElementException, StaleElementReferenceException, IndexError):
                return False
        return WebDriverWait(self.driver, limit * SLACK, poll_frequency=0.1).until(once, f"{what} did not come")

    def one(self, name, limit=PATIENCE):
        return self.until(lambda: (found := self.all(name)) and found[-1].is_displayed() and found[-1], name, limit)

    def gone(self, name):
        self.until(lambda: not self.all(name), f"the end of {name}")

    def text(self, name):
        return self.one(name).text

    def until_text(self, name, words, limit=PATIENCE):
        seen = []

        def has_come():
            seen[:] = [each.text for each in self.all(name)]
            return any(words in each for each in seen)
        try:
            self.until(has_come, f"{words!r} in {name}", limit)
        except TimeoutException as error:
            raise AssertionError(f"{error.msg}; there is {seen}") from None

    # --- doing
    def press(self, name):
        element = self.one(name)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        self.until(lambda: element.is_enabled(), f"{name} to be enabled")
        element.click()

    def approve_all(self):
        """Looks at every call first, as the page demands."""
        def is_seen():
            for each in self.all("show-unseen"):
                each.click()
            return self.one("approve-all").is_enabled()
        self.until(is_seen, "all calls to be seen")
        self.one("approve-all").click()

    def type(self, name, words, clear=False):
        element = self.one(name)
        if clear:
            element.send_keys(Keys.CONTROL, "a")
            element.send_keys(Keys.DELETE)
        element.send_keys(words)

    def open_chat(self, chat):
        # It may move in the list meanwhile, because chats that work or wait are on top.
        self.until(lambda: self.one(f"chat-item[data-chat='{chat}']").find_element(By.CSS_SELECTOR, ".chat-title").click() or True, chat)

    def say(self, words):
        self.type("composer", words)
        self.type("composer", Keys.ENTER)

    def keys(self, *keys):
        webdriver.ActionChains(self.driver).key_down(keys[0]).perform() if len(keys) > 1 else None
        chain = webdriver.ActionChains(self.driver)
        for key in keys[1:-1]:
            chain = chain.key_down(key)
        chain = chain.send_keys(keys[-1])
        for key in reversed(keys[:-1]):
            chain = chain.key_up(key)
        chain.perform()

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    # --- what it has done besides
    def problems(self):
        """Things that the page must never do, in any test."""
        self._read_logs()
        foreign = sorted(url for url in self.requested if host_of(url) not in (None, self.origin))
        refused = [each["message"] for each in self.messages if "Content Security Policy" in each["message"]]
        return ([f"the page asked other hosts: {foreign}"] if foreign else []) + ([f"against the policy: {refused}"] if refused else [])

    def _end(self, is_sound):
        self.driver.quit()

    def close(self, failed=False, name="page"):
        """Closes the window; takes a picture of it if something is wrong."""
        is_sound = False
        try:
            problems = self.problems() if self.is_watched else []
            if failed or problems:
                SCREENSHOTS.mkdir(exist_ok=True)
                self.driver.save_screenshot(str(SCREENSHOTS / f"{name}.png"))
            is_sound = not failed and not problems
        finally:
            self._end(is_sound)
        assert not problems, "; ".join(problems)


class Browser(Window):
    """A window of Chromium. Host names resolve only if they are in `hosts` (name: address)."""

    def __init__(self, port, size=SIZE, hosts=None, flags=()):
        super().__init__(start(size, hosts or {}, flags), port)
        self.is_plain = is_plain(size, hosts, flags)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})

    REQUESTS = {"Network.requestWillBeSent": lambda more: more["request"]["url"], "Network.webSocketCreated": lambda more: more["url"],
                "Network.webTransportCreated": lambda more: more["url"]}

    def _read_logs(self):
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if url := self.REQUESTS.get(message["method"]):
                self.requested.add(url(message["params"]))
        # The log has this window's requests only; of other windows, take the address.
        self.requested |= {each["url"] for each in self.driver.execute_cdp_cmd("Target.getTargets", {})["targetInfos"] if each["url"] and each["type"] != "browser"}
        self.messages += self.driver.get_log("browser")
        try:
            self.messages += [{"message": each} for each in self.script("return window.breaches?.splice(0) ?? []")]
        except (UnexpectedAlertPresentException, NoSuchWindowException):
            pass  # no page to ask

    def _leave_blank(self):
        """Keeps the browser for the next test, without what this one has left. Scripts and emulations belong to a tab and go with it."""
        old = self.driver.window_handles
        self.driver.switch_to.new_window("tab")
        blank = self.driver.current_window_handle
        for handle in old:
            self.driver.switch_to.window(handle)
            self.driver.close()
        self.driver.switch_to.window(blank)
        for origin in {self.origin} | {host for url in self.requested if (host := host_of(url))}:
            self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        for command, how in (("Network.clearBrowserCookies", {}), ("Network.clearBrowserCache", {}), ("Browser.resetPermissions", {}),
                             ("Browser.setDownloadBehavior", {"behavior": "default"})):
            self.driver.execute_cdp_cmd(command, how)
        for log in ("performance", "browser"):
            self.driver.get_log(log)
        IDLE.append(self.driver)

    def _end(self, is_sound):
        try:
            if self.is_plain and is_sound:
                self._leave_blank()
        finally:
            if self.driver not in IDLE:
                self.driver.quit()
