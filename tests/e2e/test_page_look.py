"""The look of a rich answer: facts about its layout, and pictures, in three widths, light and dark. REPRISE_NEW_PICTURES=1 takes new pictures."""
import base64
import json
import os
import pathlib

import pytest
from support.provider import text

pytestmark = pytest.mark.limit(120)
PICTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "page"
SCALE = 0.25

RICH = r"""# A rich answer

Some words with **bold**, *slanted*, `code`, ~~struck~~ and a [link](https://example.org), long enough to be wrapped in every window that is not very wide.

| Algorithm | Accuracy | Remarks on what was measured |
|:--|--:|---|
| Gradient boosting | 0.9731 | needs a good deal of tuning before it is any better than the others |
| Nearest neighbours | 0.8812 | `sklearn.neighbors.KNeighborsClassifier` |
| Multilayer perceptron | 0.9544 | slow |

```python
def mean(values):
    # a comment
    return sum(values) / len(values) if values else "nothing at all, in a line that is rather long"
```

$$\sum_{i=1}^{n} \frac{x_i^2}{\sqrt{1 + y_i}} = \int_0^\infty e^{-t^2}\,dt$$

It is $a^2 + b^2 = c^2$ within a line.

8. eight
9. nine
10. ten
    - a point in it
    - and another

- [x] done already
- [ ] still to do

> A quotation of some length, which stands a little apart from the rest of what was said.

<details><summary>More</summary>hidden</details>

![a picture](https://example.org/picture.png)

The end.
"""

# Lists every fault of the layout.
FACTS = r"""
const wrong = [], answer = document.querySelector('[data-testid=answer]'), column = answer.getBoundingClientRect();
const check = (ok, what) => ok || wrong.push(what);
check(document.documentElement.scrollWidth <= innerWidth, 'the page is wider than its window');
for (const each of answer.querySelectorAll('.block > *, .block.code')) {
  const box = each.getBoundingClientRect();
  check(box.left >= column.left - 1 && box.right <= column.right + 1, `${each.tagName} stands out of the column`);
}
for (const cell of answer.querySelectorAll('th, td')) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) for (const word of node.data.matchAll(/[^\s-]+/g)) {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    check(new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size === 1, `${word[0]} is broken`);
  }
}
const code = answer.querySelector('.block.code'), head = code.querySelector('.code-head');
check(head.getBoundingClientRect().top - code.getBoundingClientRect().top <= 2, 'there is room above the head of the code');
const maths = answer.querySelector('.math.block');
check(maths.scrollHeight <= maths.clientHeight, 'the formula is scrolled up and down');
const formula = maths.querySelector('math').getBoundingClientRect(), around = maths.getBoundingClientRect();
check(formula.top >= around.top && formula.bottom <= around.bottom, 'the formula is cut off');
for (const item of answer.querySelectorAll('li')) check(/[☑☐]/.test(item.firstChild.data ?? '') === (getComputedStyle(item).listStyleType === 'none'), `${item.textContent} has a box and a bullet, or neither`);
for (const each of answer.querySelectorAll('p, li, blockquote, h1')) check(each.scrollWidth <= each.clientWidth + 1 || getComputedStyle(each).display === 'inline', `${each.tagName} is wider than its place`);
return wrong;
"""
FONTS = """const canvas = document.createElement('canvas').getContext('2d');
return ['body', '.block.code code'].map((name) => {
  canvas.font = getComputedStyle(document.querySelector(name)).font;
  return Math.round(10 * canvas.measureText('The quick brown fox jumps over the lazy dog 0123456789').width) / 10;
});"""

# The difference of two pictures: the share of small squares whose means differ visibly.
COMPARE = """const [one, other, done] = arguments;
const load = (data) => new Promise((resolve, reject) => {
  const image = new Image();
  image.onload = () => resolve(image);
  image.onerror = reject;
  image.src = 'data:image/png;base64,' + data;
});
Promise.all([one, other].map(load)).then(([a, b]) => {
  const size = [a.width, a.height, b.width, b.height], w = Math.ceil(a.width / 4), h = Math.ceil(a.height / 4);
  const pixels = [a, b].map((image) => {
    const canvas = document.createElement('canvas');
    canvas.width = w;
    canvas.height = h;
    const context = canvas.getContext('2d');
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, w, h);
    return context.getImageData(0, 0, w, h).data;
  });
  let far = 0;
  for (let i = 0; i < w * h; i++) far += [0, 1, 2].some((c) => Math.abs(pixels[0][4 * i + c] - pixels[1][4 * i + c]) > 28) ? 1 : 0;
  done({size, far: far / (w * h)});
}, (error) => done({size: String(error), far: 1}));"""
TOLERANCE = 0.03


def distance(page, one, other):
    """The difference of two PNGs in base64; the first may differ slightly in size."""
    page.driver.get("about:blank")
    found = page.driver.execute_async_script(COMPARE, one, other)
    width, height, other_width, other_height = found["size"]
    return 1 if abs(width - other_width) > 2 or abs(height - other_height) > 0.02 * height + 2 else found["far"]


def picture_of(page):
    box = page.script("const b = document.querySelector('[data-testid=answer]').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]")
    clip = dict(zip(("x", "y", "width", "height"), box), scale=SCALE)
    return page.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})["data"]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1280, 390])
def test_a_rich_answer_looks_as_it_should(server, provider, browse, width, theme):
    provider.plan(text(RICH))
    server.client.turn("c", "show me all of it")
    page = browse(server)
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 2600, "deviceScaleFactor": 1, "mobile": False})
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    page.open("/#c")
    page.driver.refresh()
    page.until(lambda: page.css(".markdown math") and page.css(".code .hljs-keyword") and "The end." in page.css("[data-testid=answer]")[0].text, "all of it")
    page.until(lambda: page.script("return document.querySelector('.turns').scrollTop") == 0, "the top")
    assert page.script(FACTS) == []
    fonts, picture = page.script(FONTS), picture_of(page)
    kept, known = PICTURES / f"{width}-{theme}.png", PICTURES / "fonts.json"
    if os.environ.get("REPRISE_NEW_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        kept.write_bytes(base64.b64decode(picture))
        known.write_text(json.dumps(fonts) + "\n")
    if any(abs(mine - its) > 0.005 * its for mine, its in zip(fonts, json.loads(known.read_text()))):
        return  # the fonts differ from those of the pictures, so only the facts are checked
    far = distance(page, picture, base64.b64encode(kept.read_bytes()).decode())
    assert far <= TOLERANCE, f"{far:.1%} of it differs from {kept.name}"


def test_the_comparison_sees_what_differs(server, provider, browse):
    provider.plan(text(RICH))
    server.client.turn("c", "show me all of it")
    page = browse(server, "/#c", size=(1280, 2600))
    page.until(lambda: page.css(".markdown math"), "all of it")
    before = picture_of(page)
    page.script("for (const each of document.querySelectorAll('[data-testid=answer] pre')) each.style.display = 'none'")
    after = picture_of(page)
    assert distance(page, before, before) == 0 and distance(page, before, after) > TOLERANCE


def test_every_tab_has_the_size_that_the_test_asked_for(server, browse, browser):
    """A driver that an earlier test has left gives its own first size to new tabs."""
    browser(server.port, size=(500, 500)).open().close()
    page = browse(server)
    page.driver.switch_to.new_window("tab")
    page.open()
    assert page.script("return [innerWidth, innerHeight]") == [1200, 900]
