import { t } from "./texts";

const WORDS: Record<string, () => Promise<{ page: object; views: object }>> = { de: () => import("./words/de"), he: () => import("./words/he") };

// Puts the texts of the chosen language, or of the browser's, in the place of the English ones before anything is drawn.
export async function translate(): Promise<void> {
  const chosen = localStorage.getItem("language");
  const language = (chosen ? [chosen] : navigator.languages).map((each) => each.slice(0, 2)).find((each) => each === "en" || WORDS[each]) ?? "";
  if (!WORDS[language]) return;
  const [words, { v }] = await Promise.all([WORDS[language](), import("./texts_of_views")]);
  Object.assign(t, words.page);
  Object.assign(v, words.views);
  document.documentElement.lang = language;
  if (language === "he") document.documentElement.dir = "rtl";
}
