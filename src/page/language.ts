import { t } from "./texts";

interface Language {
  name: string; // by its speakers
  rightToLeft?: boolean;
  words?: () => Promise<{ page: object; views: object; served: Record<string, string> }>; // none: texts.ts and texts_of_views.ts have them
}
export const LANGUAGES: Record<string, Language> = {
  en: { name: "English" }, de: { name: "Deutsch", words: () => import("./words/de") }, he: { name: "עברית", rightToLeft: true, words: () => import("./words/he") },
};

// Reasons of the server in the language of the page, with {} for names. They are known part by part; a part that is not known stays English.
let served: [string, string][] = [];
export function inWords(reason: string): string {
  for (const [known, words] of served) {
    const [before, after] = known.split("{}") as [string, string?];
    if (reason === known) return words;
    const name = after !== undefined && reason.startsWith(before) && reason.endsWith(after) ? reason.slice(before.length, reason.length - after.length) : "";
    if (name && !/; |: |, /.test(name)) return words.replace("{}", () => inWords(name));
  }
  const between = ["; ", ": ", ", "].find((each) => served.length > 0 && reason.includes(each));
  return between ? reason.split(between).map(inWords).join(between) : reason;
}

let english: [object, object] | null = null; // the texts that another language has replaced

// Puts the texts of the chosen language, or of the browser's, in the place of those before. Returns its name.
export async function translate(): Promise<string> {
  const chosen = localStorage.getItem("language");
  const language = (chosen ? [chosen] : navigator.languages).map((each) => each.slice(0, 2)).find((each) => LANGUAGES[each]) ?? "en";
  const { words, rightToLeft } = LANGUAGES[language]!;
  if (words || english) {
    const [other, { v }] = await Promise.all([words?.(), import("./texts_of_views")]);
    if (localStorage.getItem("language") !== chosen) return translate(); // it was changed again meanwhile
    english ??= [{ ...t }, { ...v }];
    Object.assign(t, other?.page ?? english[0]);
    Object.assign(v, other?.views ?? english[1]);
    served = Object.entries(other?.served ?? {});
  }
  document.documentElement.lang = language;
  document.documentElement.dir = rightToLeft ? "rtl" : "ltr";
  return language;
}
