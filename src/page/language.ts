import { t } from "./texts";

interface Language {
  name: string; // by its speakers
  rightToLeft?: boolean;
  words?: () => Promise<{ page: object; views: object }>; // none: texts.ts and texts_of_views.ts have them
}
export const LANGUAGES: Record<string, Language> = {
  en: { name: "English" }, de: { name: "Deutsch", words: () => import("./words/de") }, he: { name: "עברית", rightToLeft: true, words: () => import("./words/he") },
};

// Puts the texts of the chosen language, or of the browser's, in the place of the English ones before anything is drawn.
export async function translate(): Promise<void> {
  const chosen = localStorage.getItem("language");
  const language = (chosen ? [chosen] : navigator.languages).map((each) => each.slice(0, 2)).find((each) => LANGUAGES[each]) ?? "en";
  const { words, rightToLeft } = LANGUAGES[language];
  if (!words) return;
  const [{ page, views }, { v }] = await Promise.all([words(), import("./texts_of_views")]);
  Object.assign(t, page);
  Object.assign(v, views);
  document.documentElement.lang = language;
  if (rightToLeft) document.documentElement.dir = "rtl";
}
