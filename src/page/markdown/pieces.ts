// Splits a text into independent pieces. Finished pieces are never looked at again, and no piece is so long that drawing
// it again with each word would be slow: a long list, table, fence or paragraph continues in the next piece.
export interface Piece {
  kind: "markdown" | "code";
  text: string; // code has no fences
  language: string;
  goesOn: boolean; // continues the piece before
  begin: number; // where the code begins in the whole text, to copy all of it
}

const LONG = 6_000; // characters in a piece

interface Fence {
  mark: string;
  language: string;
  begin: number;
}

export class Pieces {
  readonly done: Piece[] = [];
  growing: Piece | null = null;
  private at = 0;
  private fence: Fence | null = null;
  private table = ""; // the head of a table that continues
  private goesOn = false;
  private length = 0;

  // Reads the added part of the text.
  read(text: string): void {
    if (text.length === this.length) return;
    this.length = text.length;
    while (this.next(text)) continue;
  }

  private push(piece: Piece): void {
    this.done.push(piece);
  }

  // Takes one more finished piece, or the rest as the growing one. True if there may be more.
  private next(text: string): boolean {
    if (this.fence) return this.nextOfFence(text, this.fence);
    const rest = text.slice(this.at, this.at + 4 * LONG);
    const opening = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))([^\n`]*)\n/.exec(rest);
    if (opening) {
      this.fence = { mark: opening[1]!, language: opening[2]!.match(/[\w+#-]+/)?.[0] ?? "", begin: this.at + opening[0].length };
      this.at += opening[0].length;
      this.goesOn = false;
      return true;
    }
    let end = endOfBlock(rest, this.at + rest.length === text.length);
    let next = "";
    let goesOn = false;
    if ((end < 0 && rest.length > LONG) || end > LONG) {
      [end, next] = this.cut(rest.slice(0, end < 0 ? undefined : end));
      goesOn = true;
    }
    if (end < 0) {
      this.growing = rest === "" ? null : this.markdown(rest);
      return false;
    }
    this.push(this.markdown(rest.slice(0, end)));
    this.at += end;
    this.goesOn = goesOn;
    this.table = next;
    this.growing = null;
    return true;
  }
  private markdown(text: string): Piece {
    return { kind: "markdown", text: this.table + text, language: "", goesOn: this.goesOn, begin: 0 };
  }

  // Where to end a piece that is too long, and how the next one begins.
  private cut(text: string): [number, string] {
    const table = this.table || headOfTable(text);
    const part = text.slice(0, LONG);
    if (table) {
      const end = part.lastIndexOf("\n");
      if (end > 0 && (this.table !== "" || end >= table.length)) return [end + 1, table];
    }
    for (let line = part.lastIndexOf("\n"); line > 0; line = part.lastIndexOf("\n", line - 1)) {
      if (/^(?:[-*+]|\d{1,9}[.)]) /.test(part.slice(line + 1, line + 13))) return [line + 1, ""];
    }
    const line = part.lastIndexOf("\n");
    if (line > LONG / 4) return [line + 1, ""];
    const space = part.lastIndexOf(" ");
    return [space > LONG / 4 ? space + 1 : isLow(text, LONG) ? LONG - 1 : LONG, ""];
  }

  private nextOfFence(text: string, fence: Fence): boolean {
    const rest = text.slice(this.at, this.at + 2 * LONG);
    const close = new RegExp(`(^|\\n) {0,3}${fence.mark[0]}{${fence.mark.length},}[ \\t]*(\\n|$)`).exec(rest);
    const isWhole = this.at + rest.length === text.length;
    const closes = close !== null && (close[2] === "\n" || isWhole);
    const code = closes ? rest.slice(0, close.index + close[1]!.length) : rest;
    if (code.length > LONG) {
      const line = code.lastIndexOf("\n", LONG);
      const end = line > LONG / 4 ? line + 1 : isLow(code, LONG) ? LONG - 1 : LONG;
      this.push(this.code(code.slice(0, end), fence));
      this.at += end;
      this.goesOn = true;
      return true;
    }
    // A fence at the very end of a growing text may still get longer.
    if (closes && close[2] === "\n") {
      this.push(this.code(code, fence));
      this.at += close.index + close[0].length;
      this.fence = null;
      this.goesOn = false;
      this.growing = null;
      return true;
    }
    this.growing = this.code(closes ? code : code.replace(/(^|\n) {0,3}(`+|~+)$/, "$1"), fence);
    return false;
  }
  private code(text: string, fence: Fence): Piece {
    return { kind: "code", text: text.replace(/\n$/, ""), language: fence.language, goesOn: this.goesOn, begin: fence.begin };
  }
}

// The head of a table (the names of the columns and the line below), if the text begins with one.
function headOfTable(text: string): string {
  const [names = "", below = ""] = text.split("\n", 2);
  const head = `${names}\n${below}\n`;
  return names.includes("|") && below.includes("-") && /^[ :|-]+$/.test(below) && text.startsWith(head) ? head : "";
}

const isLow = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;

// The whole code that this is a piece of.
export function wholeCode(text: string, piece: Piece): string {
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(text.slice(text.lastIndexOf("\n", piece.begin - 2) + 1, piece.begin))?.[1] ?? "```";
  const close = new RegExp(`(^|\\n) {0,3}${fence[0]}{${fence.length},}[ \\t]*(\\n|$)`).exec(text.slice(piece.begin));
  return text.slice(piece.begin, close ? piece.begin + close.index + close[1]!.length : undefined).replace(/\n$/, "");
}

function endOfBlock(text: string, isEnd: boolean): number {
  let from = 0;
  for (;;) {
    const blank = text.indexOf("\n\n", from);
    const next = text.slice(0, blank < 0 ? text.length : blank).search(/\n {0,3}(`{3,}|~{3,})/);
    if (next >= 0) return next + 1;
    if (blank < 0) return -1;
    // A list, a quote or a table continues after an empty line if the next line is indented.
    const behind = text.slice(blank + 2, blank + 6);
    if (behind === "" || (isEnd && behind.length < 4 && /^\s*$/.test(behind))) return -1;
    if (!/^( {2,}|\t)/.test(behind)) return blank + 2;
    from = blank + 2;
  }
}
