"""How the page is built: from Debian's packages alone, reproducibly, small, with its texts in files of their own; and how fast it appears."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from support.browser import Browser  # noqa: F401 - skips all of this where there is no browser to look with
from support.server import BINARY
from support.timing import SLACK, median

ROOT = BINARY.parents[2]
SOURCE = ROOT / "src" / "page"
PACKAGES = ("/usr/share/nodejs/", "/usr/lib/nodejs/", "/usr/share/javascript/")


def without_network():
    """The prefix that runs a command without a network; empty if this machine does not allow that."""
    for unshare in (["unshare", "-n"], ["unshare", "-rn"]):
        if subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return unshare
    return []


def bundle(out):
    command = [*without_network(), "cmake", "-D", f"ESBUILD={shutil.which('esbuild')}", "-D", f"SOURCE={SOURCE}", "-D", f"OUT={out}", "-P", str(SOURCE / "bundle.cmake")]
    done = subprocess.run(command, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page, built once without a network and without this machine's environment."""
    out = tmp_path_factory.mktemp("page")
    return out, bundle(out)


def test_the_build_says_how_large_the_page_is(made):
    out, said = made
    first, later = map(int, re.search(r"the page: (\d+) bytes packed \((\d+) more when they are needed\)", said).groups())
    assert 0 < first <= 150 * 1024 and later > 0
    assert first + later == sum(file.stat().st_size for file in (out / "packed").iterdir() if file.suffixes[0] in (".js", ".css"))


def test_the_build_needs_nothing_but_packages_of_the_distribution(made):
    out, _ = made
    inputs = {(ROOT / name).resolve() if not name.startswith("/") else pathlib.Path(name).resolve() for name in json.loads((out / "meta.json").read_text())["inputs"]
              if not name.startswith("<") and ":" not in name}
    others = {str(path) for path in inputs if SOURCE not in path.parents}
    assert others and all(path.startswith(PACKAGES) for path in others), sorted(others)[:5]
    owners = subprocess.run(["dpkg", "-S", *sorted(others)], capture_output=True, text=True, check=False)
    assert owners.returncode == 0, owners.stderr
    assert not list(ROOT.glob("**/package.json")) and not (ROOT / "node_modules").exists()


def test_the_same_sources_give_the_same_bytes(made, tmp_path):
    out, _ = made
    bundle(tmp_path)
    one, other = ({file.name: file.read_bytes() for file in (folder / "packed").iterdir()} for folder in (out, tmp_path))
    assert one == other


def test_no_part_of_it_names_another_host_to_fetch_from(made):
    """Namespaces and links for people are no fetches; the other addresses would be fetched by code."""
    out, _ = made
    for file in (out / "bundle").iterdir():
        found = set(re.findall(r"https?://[^\s\"'`)\\<>]+", file.read_text()))
        known = ("http://www.w3.org/", "https://reactjs.org/", "https://react.dev/", "https://github.com/", "https://marked.js.org/", "https://highlightjs.org",
                 "https://katex.org")
        # Of providers that a person may choose; the server asks them, and the page's policy lets it ask nobody else.
        chosen = {"https://api.openai.com/v1", "https://api.anthropic.com", "https://openrouter.ai/api/v1", "http://127.0.0.1:11434/v1", "http://127.0.0.1:8080/v1"}
        assert all(each.startswith(known) or each in chosen for each in found), sorted(found)
        assert not re.search(r"\beval\(|new Function\(|importScripts\(", file.read_text()), file.name


def test_the_first_paint(server, browse, figure):
    """Measures the time from the last byte of the HTML to the first paint."""
    page = browse(server)
    taken = []
    for _ in range(5):
        page.driver.refresh()
        page.one("composer")
        taken.append(page.script("const nav = performance.getEntriesByType('navigation')[0];"
                                 "return performance.getEntriesByName('first-contentful-paint')[0].startTime - nav.responseEnd"))
    figure(f"first paint of the page: {median(taken):.0f} ms after the HTML")
    assert median(taken) < 100 * SLACK


# --- its sources ------------------------------------------------------------------------------------------------------

def circle_in(folder):
    """Files of which each imports the next, and the last one the first; empty if there are none. Types and parts that are loaded late count too."""
    known = {path.with_suffix(""): path for path in folder.rglob("*.ts*") if path.suffix in (".ts", ".tsx")}
    imports = {path: [known[at] for name in re.findall(r'(?:from |import\()"(\.[^"]*)"', path.read_text()) if (at := pathlib.Path(os.path.normpath(path.parent / name))) in known]
               for path in known.values()}
    while leaves := {path for path, others in imports.items() if not any(each in imports for each in others)}:
        imports = {path: others for path, others in imports.items() if path not in leaves}
    return sorted(path.name for path in imports)  # and those that lead to the circle


def test_no_file_imports_itself_by_way_of_others(tmp_path):
    for name, text in {"a.ts": 'import { b } from "./parts/b";', "parts/b.tsx": 'lazy(() => import("../a"));', "c.ts": 'import { a } from "./d";', "d.ts": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert circle_in(tmp_path) == ["a.ts", "b.tsx"]
    assert circle_in(SOURCE) == []


COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|hwb|lab|lch|oklab|oklch|light-dark)a?\(|:\s*(?:white|black|red|green|blue|gr[ae]y)\b")


def faults_of(css, sources):
    """What is not as styles are written here: a colour outside of the palette, two rules in a line, a property or class that nothing uses."""
    palette, rest = css.split("}", 1)
    classes = {name for selector in re.findall(r"([^{}]*){", rest) for name in re.findall(r"\.([a-zA-Z][\w-]*)", selector)}
    return ([f"{line}: a colour" for line in rest.splitlines() if COLOUR.search(line)] + [f"{line}: two rules" for line in rest.splitlines() if line.count("{") > 1]
            + [f"{line}: longer than 120" for line in css.splitlines() if len(line) > 120]
            + [f"{name}: not used" for name in re.findall(r"(--[\w-]+):", palette) if f"var({name})" not in rest]
            # Names of colours, risks and kinds of words are put together.
            + [f".{name}: not used" for name in sorted(classes) if not re.search(rf"(?<![\w-]){name}(?![\w-])", sources) and not re.match("ansi-|hljs-|risk-", name)])


def test_styles_are_readable_and_their_colours_in_one_palette():
    planted = ":root { --a: #fff; --b: #000; }\n.here { color: var(--a); } .there { color: #123; }\n"
    assert [fault.rsplit(": ", 1)[1] for fault in faults_of(planted, '"here"')] == ["a colour", "two rules", "not used", "not used"]
    css = "".join((SOURCE / name).read_text() for name in re.findall(r'"\./(.*)"', (SOURCE / "style.css").read_text()))
    assert faults_of(css, "".join(path.read_text() for path in SOURCE.rglob("*") if path.suffix in (".ts", ".tsx", ".html"))) == []


# --- texts -----------------------------------------------------------------------------------------------------------

# Prints the words for people in a source: text between tags, attributes that are shown or read aloud, and the texts of
# notices and confirmations.
FIND = r"""
const ts = require(process.argv[2]), fs = require('fs');
const shown = new Set(['aria-label', 'title', 'placeholder', 'alt', 'label', 'aria-description', 'aria-roledescription', 'aria-valuetext']);
const joins = [ts.SyntaxKind.BarBarToken, ts.SyntaxKind.AmpersandAmpersandToken, ts.SyntaxKind.QuestionQuestionToken, ts.SyntaxKind.PlusToken];
const words = /[A-Za-z\u00c0-\u024f]{2,}/;
for (const file of process.argv.slice(3)) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true, file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const tell = (node, text) => console.log(`${file}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${text.trim()}`);
  const literals = (node, found) => {
    if (ts.isStringLiteralLike(node)) found(node, node.text);
    else if (ts.isTemplateExpression(node)) {
      found(node, node.head.text);
      node.templateSpans.forEach((span) => { found(span, span.literal.text); literals(span.expression, found); });
    }
    else if (ts.isConditionalExpression(node)) { literals(node.whenTrue, found); literals(node.whenFalse, found); }
    else if (ts.isBinaryExpression(node) && joins.includes(node.operatorToken.kind)) {
      if (node.operatorToken.kind === ts.SyntaxKind.PlusToken) literals(node.left, found);
      literals(node.right, found);
    } else if (ts.isParenthesizedExpression(node)) literals(node.expression, found);
  };
  const found = (node, text) => { if (words.test(text)) tell(node, text); };
  const look = (node) => {
    if (ts.isJsxText(node) && words.test(node.text)) tell(node, node.text);
    if (ts.isJsxExpression(node) && node.expression && (ts.isJsxElement(node.parent) || ts.isJsxFragment(node.parent))) literals(node.expression, found);
    if (ts.isJsxAttribute(node) && node.initializer && shown.has(node.name.getText()))
      literals(ts.isJsxExpression(node.initializer) ? node.initializer.expression : node.initializer, found);
    if (ts.isCallExpression(node) && /(^|\.)(tell|alert|confirm|prompt)$/.test(node.expression.getText())) node.arguments.forEach((each) => literals(each, found));
    ts.forEachChild(node, look);
  };
  look(source);
}
"""
TYPESCRIPT = next((place for place in ("/usr/share/nodejs/typescript", "/usr/lib/nodejs/typescript") if os.path.exists(place)), None)
# Names of formats and of this program are the same in every language.
NAMES = {"JSON", "(JSON)", "(Markdown)", "Markdown", "Reprise"}
KEYS = re.compile(r"\(?(Ctrl|Alt|Shift|Esc|Enter)( ([A-Z]|Ctrl|Alt|Shift))*\)?|[a-z]+(_[a-z]+)+")  # labels of keys, and JSON members


def words_in(*files):
    done = subprocess.run(["node", "-e", FIND, "-", TYPESCRIPT, *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.split(": ", 1)[1] not in NAMES and not KEYS.fullmatch(line.split(": ", 1)[1])]


TEXTS = ("texts.ts", "texts_of_views.ts")


@pytest.mark.skipif(TYPESCRIPT is None, reason="node-typescript is not installed")
def test_all_words_for_people_are_in_the_files_of_texts(tmp_path):
    planted = tmp_path / "planted.tsx"
    planted.write_text("""const x = <div className="not this" data-testid="nor-this" aria-label="this one">and this {ok ? "also this" : t.no} {`${n} more of it`}</div>;
        store.tell("told"); document.querySelector("main nav"); <b title={t.fine}>{t.fine} × ⋯</b>;""")
    assert [line.split(": ", 1)[1] for line in words_in(planted)] == ["this one", "and this", "also this", "more of it", "told"]
    sources = [path for path in SOURCE.rglob("*.ts*") if path.name not in (*TEXTS, "tsconfig.json") and not path.name.endswith(".d.ts")]
    assert len(sources) > 20
    assert words_in(*sources) == []
    # The files have only texts, so another language is other such files.
    for name in TEXTS:
        assert not re.search(r"^import\b", (SOURCE / name).read_text(), re.MULTILINE)


# --- regular expressions ------------------------------------------------------------------------------------------------

# Tries each expression on long runs of its own characters. If the time grows faster than the text, the page would freeze.
PUMP = r"""
const ts = require(process.argv[2]), fs = require('fs'), vm = require('vm');
const LENGTH = 100000, LIMIT = Number(process.argv[3]);
const context = vm.createContext({}), replace = new vm.Script('text.replace(expression, "")');  // once, because making them takes as long as an expression
const slow = (expression, text) => {
  for (let tries = 0; tries < 3; tries++) {
    const from = performance.now();
    Object.assign(context, { text, expression });
    try { replace.runInContext(context, { timeout: 4 * LIMIT }); } catch (error) { if (error.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error; }
    if (performance.now() - from < LIMIT) return false;
  }
  return true;
};
for (const file of process.argv.slice(4)) {
  const source = ts.createSourceFile(file, fs.readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true, file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const tell = (node, what) => console.log(`${file}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${what}`);
  const look = (node) => {
    if (ts.isNewExpression(node) && node.expression.getText() === 'RegExp') tell(node, `made: ${node.arguments[0].getText()}`);
    if (ts.isRegularExpressionLiteral(node)) {
      const [, body, flags] = /^\/(.*)\/([a-z]*)$/s.exec(node.text);
      const expression = new RegExp(body, flags.includes('g') ? flags : flags + 'g');
      const own = [...new Set(body.replace(/\\[a-zA-Z](\{[^}]*\}|[0-9a-f]{4})?|[?+^$]/g, ''))].slice(0, 12);
      const begins = /^[^\\[\](){}.*+?^$|]{2,}/.exec(body);
      const units = [...(begins ? [begins[0]] : []), ...own, ...'a1 \n-', ...own.flatMap((a) => [...own, 'a', ' '].map((b) => a + b))];
      for (const unit of new Set(units)) for (const begin of ['', '\n' + own[0]]) if (slow(expression, begin + unit.repeat(LENGTH / unit.length) + '\u0001')) {
        tell(node, `${node.text} on ${JSON.stringify(begin)} ${JSON.stringify(unit)}...`);
        return;
      }
    }
    ts.forEachChild(node, look);
  };
  look(source);
}
"""
# Expressions there are built of escaped words, or of a mark and a number; the pattern of a foreign schema is checked first.
MADE = {"src/page/chats/Marked.tsx", "src/page/chat/schema.ts", "src/page/markdown/pieces.ts"}


def slow_in(*files):
    done = subprocess.run(["node", "-e", PUMP, "-", TYPESCRIPT, str(100 * SLACK), *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.limit(300)
@pytest.mark.skipif(TYPESCRIPT is None, reason="node-typescript is not installed")
def test_no_regular_expression_of_ours_backtracks(tmp_path):
    planted = tmp_path / "planted.ts"
    bad = [r"/(?:[>\s]*>){24}/", r"/(a+)+$/", r"/^(\w+\s?)*$/", r"/~{3,}[^\n]*\n/", r"/<!--.*-->/"]
    planted.write_text("\n".join([f"export const r{n} = {each};" for n, each in enumerate(bad)] + ["export const fine = /^[a-z]+$/;"]))
    assert len(slow_in(planted)) == len(bad)
    found = slow_in(*(path for path in sorted(SOURCE.rglob("*.ts*")) if path.suffix in (".ts", ".tsx") and not path.name.endswith(".d.ts")))
    made = {str(pathlib.Path(line.split(":")[0]).relative_to(ROOT)) for line in found if ": made: " in line}
    assert made == MADE and [line for line in found if ": made: " not in line] == []
