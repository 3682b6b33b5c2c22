"""Chromium through its driver, by the W3C WebDriver protocol in plain HTTP."""
import base64
import json
import re
import subprocess
import urllib.request

BOUND = 60


class Browser:
    def __init__(self):
        # Port 0: the driver takes a free one and says which.
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                break
        else:
            raise SystemExit("chromedriver does not start")
        self.root = f"http://127.0.0.1:{found[1]}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,800"]
        options = {"goog:chromeOptions": {"args": arguments}, "goog:loggingPrefs": {"browser": "ALL"}}
        answer = self._http("POST", self.root, {"capabilities": {"alwaysMatch": options}})
        self.session = f"{self.root}/{answer['sessionId']}"

    def _http(self, method, url, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=BOUND) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {url}: {json.load(error)['value']['message']}") from None

    def post(self, path, **body):
        return self._http("POST", f"{self.session}/{path}", body)

    def open(self, path):
        self.post("url", url=path.resolve().as_uri())
        self.painted()

    def run(self, script, *args):
        return self.post("execute/sync", script=script, args=list(args))

    def wait(self, script, *args):
        """What the script hands to the function that it gets as its last argument."""
        return self.post("execute/async", script=script, args=list(args))

    def painted(self):
        """Until what has changed is on the canvas."""
        self.wait("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def command(self, name, **parameters):
        return self.post("goog/cdp/execute", cmd=name, params=parameters)

    def size(self, width, height, touch=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.painted()

    def theme(self, name):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])
        self.painted()

    def keys(self, *keys):
        """Presses and releases one after the other; a string of more than one character is typed."""
        steps = []
        for key in keys:
            for each in [key] if key in NAMED else key:
                value = NAMED.get(each, each)
                steps += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.post("actions", actions=[{"type": "key", "id": "keyboard", "actions": steps}])
        self.painted()

    def mouse(self, *steps):
        """Each step is (x, y), "down" or "up"."""
        actions = [
            {"type": "pointerDown" if step == "down" else "pointerUp", "button": 0} if isinstance(step, str)
            else {"type": "pointerMove", "x": round(step[0]), "y": round(step[1]), "duration": 0}
            for step in steps
        ]
        self.post("actions", actions=[{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}])
        self.painted()

    def wheel(self, x, y, by):
        step = {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": by, "duration": 0}
        self.post("actions", actions=[{"type": "wheel", "id": "wheel", "actions": [step]}])
        self.painted()

    def complaints(self):
        """The errors on the console since the last call; advice on speed, which the tests themselves cause, is none."""
        return [entry["message"] for entry in self.post("se/log", type="browser") if entry["level"] == "SEVERE"]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._http("GET", f"{self.session}/screenshot")))

    def close(self):
        self._http("DELETE", self.session)
        self.driver.terminate()
        self.driver.wait()


NAMED = {
    "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014",
    "Down": "\ue015", "Home": "\ue011", "End": "\ue010",
}
