"""What a terminal has shown, as a picture that moves: an SVG file without scripts, which begins again at its end."""
import html

import pyte

from .terminal import ASKS_FOR_KEYS

WIDTH, HEIGHT, MARGIN = 8.4, 19, 14  # pixels of a character's cell, and around all of them
PAUSE = 2.5  # seconds, at the end
COLOURS = {"default": "#d6deeb", "black": "#637777", "red": "#ff6b6b", "green": "#7fd88f", "brown": "#e5c07b", "blue": "#82aaff",
           "magenta": "#c792ea", "cyan": "#7fdbca", "white": "#ffffff"}
GROUND = "#0f1722"


def colour(name):
    """A colour of pyte's: a name, a bright one, or six hexadecimal digits."""
    return COLOURS.get(name.removeprefix("bright")) or f"#{name}"


def looks(char):
    front, ground = colour(char.fg), GROUND if char.bg == "default" else colour(char.bg)
    if char.reverse:
        front, ground = ground, front
    return front, ground, char.bold, char.italics, char.underscore


def drawn(row, columns):
    """A row as SVG, without its place: runs of characters that look alike."""
    cells = [row[column] for column in range(columns)]
    while cells and not cells[-1].data.strip() and looks(cells[-1])[1] == GROUND:
        cells.pop()
    grounds, runs, column = "", "", 0
    while column < len(cells):
        style, text, first = looks(cells[column]), "", column
        while column < len(cells) and looks(cells[column]) == style:
            text += cells[column].data
            column += 1
        front, ground, bold, italics, underscore = style
        if ground != GROUND:
            grounds += f'<rect x="{first * WIDTH:g}" width="{(column - first) * WIDTH:g}" height="{HEIGHT}" fill="{ground}"/>'
        if text.strip():
            more = "".join(name for name, on in ((' font-weight="bold"', bold), (' font-style="italic"', italics), (' text-decoration="underline"', underscore)) if on)
            fill = "" if front == COLOURS["default"] else f' fill="{front}"'
            first += len(text) - len(text.lstrip())
            text = text.strip().replace(" ", "\u00a0")  # several of them would be drawn as one
            runs += f'<text x="{first * WIDTH:g}" y="14" textLength="{len(text) * WIDTH:g}"{fill}{more}>{html.escape(text, quote=False)}</text>'
    return grounds + runs


class MovingPicture:
    """Takes the screen of a terminal when it is told to."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.rows, self.columns = terminal.first_size
        self.screen = pyte.Screen(self.columns, self.rows)
        self.stream, self.fed = pyte.ByteStream(self.screen), 0
        self.frames = []  # (seconds, rows as SVG)
        self.lines = []  # the text of the frames that stay for a while

    def take(self, seconds):
        """The screen as it is now, which will be shown so long."""
        self.stream.feed(ASKS_FOR_KEYS.sub(b"", self.terminal.raw[self.fed:]))
        self.fed = len(self.terminal.raw)
        self.frames.append((seconds, [drawn(self.screen.buffer[row], self.columns) for row in range(self.rows)]))
        if seconds >= 1:
            self.lines += self.screen.display

    def svg(self, title):
        whole = sum(seconds for seconds, _ in self.frames) + PAUSE
        width, height = self.columns * WIDTH + 2 * MARGIN, self.rows * HEIGHT + 2 * MARGIN
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" height="{height}" role="img">',
               f"<title>{html.escape(title)}</title>",
               f'<rect width="100%" height="100%" rx="10" fill="{GROUND}"/>',
               f'<g fill="{COLOURS["default"]}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14">']
        for row in range(self.rows):
            began, at = 0.0, 0.0
            for number, (seconds, rows) in enumerate(self.frames):
                at += seconds
                last = number + 1 == len(self.frames)
                if not last and self.frames[number + 1][1][row] == rows[row]:
                    continue
                until = whole if last else at
                if rows[row]:
                    # Without animations, the last screen is shown.
                    values, times = ["visible", "hidden"], [0, until / whole]
                    if began > 0:
                        values, times = ["hidden", *values], [0, began / whole, until / whole]
                    if last:
                        values, times = values[:-1], times[:-1]
                    still = len(values) == 1
                    moves = "" if still else (f'<animate attributeName="visibility" calcMode="discrete" dur="{whole:g}s" repeatCount="indefinite" '
                                              f'values="{";".join(values)}" keyTimes="{";".join(f"{each:.4g}" for each in times)}"/>')
                    hidden = "" if last else ' visibility="hidden"'
                    out.append(f'<g transform="translate({MARGIN},{MARGIN + row * HEIGHT})"{hidden}>{moves}{rows[row]}</g>')
                began = at
        return "\n".join([*out, "</g>", "</svg>", ""])
