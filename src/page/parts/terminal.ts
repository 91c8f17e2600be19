// A program's output as a terminal would show it: colours become classes, and an overwritten line shows its last state.
interface Run {
  text: string;
  style: string; // CSS classes; may be empty
}

const ESCAPE = /\u001b(?:\[([0-9;:]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;
const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

interface Style {
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  colour: string;
}
const PLAIN: Style = { bold: false, dim: false, italic: false, underline: false, colour: "" };

function styled(style: Style, codes: string): Style {
  const next = { ...style };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i]!;
    if (code === 0) Object.assign(next, PLAIN);
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) next.colour = COLOURS[code % 10]!;
    else if (code === 39) next.colour = "";
    else if (code === 38 || code === 48) {
      const isIndexed = numbers[i + 1] === 5, index = numbers[i + 2] ?? 0;
      if (code === 38) next.colour = isIndexed && index < 16 ? COLOURS[index % 8]! : ""; // other colours may be unreadable on some backgrounds
      i += isIndexed ? 2 : 4;
    }
  }
  return next;
}

const classesOf = (style: Style): string =>
  [style.bold && "bold", style.dim && "dim", style.italic && "italic", style.underline && "underline", style.colour].filter(Boolean).map((name) => `ansi-${name}`).join(" ");

// The last state of an overwritten line that is not blank.
function lastState(line: string): string {
  const states = line.replace(/\r$/, "").split("\r");
  for (let i = states.length - 1; i > 0; i--) if (states[i]!.replace(ESCAPE, "").trim() !== "") return states[i]!;
  return states[0]!;
}

export function runsOf(output: string): Run[] {
  const text = output.includes("\r") ? output.split("\n").map(lastState).join("\n") : output;
  if (!text.includes("\u001b")) return [{ text, style: "" }];
  const runs: Run[] = [];
  let style = PLAIN, at = 0;
  const add = (part: string): void => void (part !== "" && runs.push({ text: part, style: classesOf(style) }));
  for (const found of text.matchAll(ESCAPE)) {
    add(text.slice(at, found.index));
    at = found.index! + found[0].length;
    if (found[2] === "m") style = styled(style, found[1] ?? "");
  }
  add(text.slice(at));
  return runs;
}
