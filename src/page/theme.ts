// Dark, light, or the system's theme.
import { store } from "./store/state";

export const themeNow = (): string => localStorage.getItem("theme") ?? "system";
export function setTheme(theme: string): void {
  store("theme", theme === "system" ? "" : theme);
  showTheme();
}
export function showTheme(): void {
  const theme = themeNow();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
