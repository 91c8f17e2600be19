// Dark, light, or the system's theme.
export const themeNow = (): string => localStorage.getItem("theme") ?? "system";
export function setTheme(theme: string): void {
  if (theme === "system") localStorage.removeItem("theme");
  else localStorage.setItem("theme", theme);
  showTheme();
}
export function showTheme(): void {
  const theme = themeNow();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
