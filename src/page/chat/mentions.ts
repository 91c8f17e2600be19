// The files that a message names, read as the terminal client reads them: @notes.txt, or with blanks in the name, @"my notes.txt".
const MOST = 20; // of one message

export function mentionsIn(text: string): string[] {
  const paths = [...text.matchAll(/(?<=^|[ \n])@(?:"([^"\n]+)"?|([^ \n"][^ \n]*))/g)].map((each) => each[1] ?? each[2]!);
  return [...new Set(paths)].slice(0, MOST);
}

export const mentionOf = (path: string): string => (path.includes(" ") ? `@"${path}"` : `@${path}`);

// What stands before the caret if a file is being named there: where that begins, and as much of the name as there is.
export function mentionBefore(text: string): { from: number; word: string } | null {
  const found = /(?:^|[ \n])@(?:"([^"\n]*)|([^\s"]*))$/.exec(text);
  return found && { from: text.lastIndexOf("@", text.length - 1 - (found[1] ?? found[2]!).length), word: found[1] ?? found[2]! };
}
