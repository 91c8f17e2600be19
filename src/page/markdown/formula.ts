import katex from "katex";

// Renders a formula as MathML, which needs neither fonts nor styles.
export function formula(place: HTMLElement, tex: string, block: boolean): void {
  if (tex.length > 5000) return;
  try {
    katex.render(tex, place, { output: "mathml", displayMode: block, throwOnError: true, trust: false, maxExpand: 100, maxSize: 20 });
  } catch {
    place.textContent = tex;
  }
}
