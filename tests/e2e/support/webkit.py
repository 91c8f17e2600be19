"""WebKit, as Debian has it: WebKitGTK's MiniBrowser, driven through WebKitWebDriver. It has no headless mode, so it draws on an X server without a screen."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import pytest
from selenium.webdriver.remote.file_detector import UselessFileDetector
from selenium.webdriver.remote.webelement import WebElement

from .browser import TEXT, WATCH, Window, webdriver
from .timing import SOON, eventually

PROGRAM, SCREEN = shutil.which("WebKitWebDriver"), shutil.which("Xvfb")
BROWSER = next(iter(sorted(pathlib.Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))), None)


class Element(WebElement):
    @property
    def text(self):
        """As the page has it. The driver's own leaves out what could be cut off at an edge, even if it is not."""
        return self.parent.execute_script(TEXT, self)


class Driver(webdriver.Remote):
    _web_element_cls = Element


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class WebKit(Window):
    """One window of a WebKit of its own."""

    def __init__(self, port, size=(1200, 900)):
        if not PROGRAM or not SCREEN or not BROWSER:
            pytest.skip("webkit2gtk-driver and xvfb are not installed (scripts/deps browsers)")
        self.folder = tempfile.TemporaryDirectory(prefix="reprise-webkit-", ignore_cleanup_errors=True)
        self.processes = []
        try:
            super().__init__(self._start(), port)
            self._fit(size)
        except BaseException:
            self._stop()
            raise

    def _run(self, *command, **more):
        self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more))

    def _start(self):
        told, tells = os.pipe()
        self._run(SCREEN, "-displayfd", str(tells), "-screen", "0", "1600x1200x24", "-nolisten", "tcp", pass_fds=[tells])
        os.close(tells)
        with open(told) as file:
            display = file.readline().strip()
        port = free_port()
        self._run(PROGRAM, f"--port={port}", "--host=127.0.0.1", env={"PATH": os.environ["PATH"], "HOME": self.folder.name, "DISPLAY": f":{display}",
                                                                   "LIBGL_ALWAYS_SOFTWARE": "1", "NO_AT_BRIDGE": "1", "LANG": "C.UTF-8"})
        eventually(lambda: listens(port), "WebKitWebDriver listens", 3 * SOON)
        options = webdriver.WebKitGTKOptions()
        options.binary_location = str(BROWSER)
        options.add_argument("--automation")
        return Driver(command_executor=f"http://127.0.0.1:{port}", options=options, file_detector=UselessFileDetector())

    def _fit(self, size):
        """The size of the page, without the window's own bar."""
        self.driver.set_window_size(*size)
        inner = self.script("return [innerWidth, innerHeight]")
        self.driver.set_window_size(*(2 * wanted - has for wanted, has in zip(size, inner)))

    def open(self, path="/"):
        super().open(path)
        self.script(f"if (!('breaches' in window)) {{ {WATCH} }}")  # there is no way to run it before the page's own
        return self

    def _read_logs(self):
        self.messages += [{"message": each} for each in self.script("return window.breaches?.splice(0) ?? []")]
        self.requested |= set(self.script("return performance.getEntriesByType('resource').map((each) => each.name)"))

    def _end(self, _):
        try:
            self.driver.quit()
        finally:
            self._stop()

    def _stop(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.folder.cleanup()
