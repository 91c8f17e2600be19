// The files that a message names, as the terminal client reads them: @notes.txt, or, if the name has blanks, @"my notes.txt".
const MOST = 20; // in one message

export function mentionsIn(text: string): string[] {
  const paths = [...text.matchAll(/(?<=^|[ \n])@(?:"([^"\n]+)"?|([^ \n"][^ \n]*))/g)].map((each) => each[1] ?? each[2]!);
  return [...new Set(paths)].slice(0, MOST);
}

export const mentionOf = (path: string): string => (path.includes(" ") ? `@"${path}"` : `@${path}`);

// The mention being typed before the caret: where it begins, and the name so far; null if there is none.
export function mentionBefore(text: string): { from: number; word: string } | null {
  const found = /(?:^|[ \n])@(?:"([^"\n]*)|([^\s"]*))$/.exec(text);
  return found && { from: text.lastIndexOf("@", text.length - 1 - (found[1] ?? found[2]!).length), word: found[1] ?? found[2]! };
}
