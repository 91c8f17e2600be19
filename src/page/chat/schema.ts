// JSON Schema as forms need it: the kind of field for a value, and the errors in it. The server checks everything
// again.
import { t } from "../texts";
import { Exact, isNumber, parseExact } from "./exact";
import type { Values } from "./values";

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  format?: string;
  default?: unknown;
}
export type Kind = "choice" | "kinds" | "object" | "array" | "boolean" | "number" | "integer" | "string" | "json";

export function parseSchema(text: string | undefined): Schema | null {
  try {
    const schema = parseExact(text ?? "") as Schema;
    return schema && typeof schema === "object" && schema.properties ? schema : null;
  } catch {
    return null;
  }
}

export const alternatives = (schema: Schema): Schema[] | undefined => schema.oneOf ?? schema.anyOf;

export function kindOf(schema: Schema): Kind {
  const others = alternatives(schema);
  if (schema.enum || others?.every((each) => each.const !== undefined)) return "choice";
  if (others) return "kinds";
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type;
  if (type === "object" || (!type && schema.properties)) return schema.properties ? "object" : "json";
  if (type === "array") return schema.items && !Array.isArray(schema.items) ? "array" : "json";
  return type === "boolean" || type === "number" || type === "integer" || type === "string" ? type : type === undefined && !schema.const ? "string" : "json";
}

export const isSame = (a: unknown, b: unknown): boolean => a === b || (isNumber(a) && isNumber(b) && String(a) === String(b));

export const choicesOf = (schema: Schema): { value: unknown; label: string }[] =>
  schema.enum?.map((value) => ({ value, label: String(value) })) ?? (alternatives(schema) ?? []).map((each) => ({ value: each.const, label: each.title ?? String(each.const) }));

export function defaultsOf(schema: Schema): Values {
  const values: Values = {};
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if (each.default !== undefined) values[name] = each.default;
    else if (kindOf(each) === "object" && schema.required?.includes(name)) values[name] = defaultsOf(each);
    else if (kindOf(each) === "boolean" && schema.required?.includes(name)) values[name] = false;
  }
  return values;
}

// The initial value of a new field.
export function blank(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default;
  switch (kindOf(schema)) {
    case "object": return defaultsOf(schema);
    case "array": return [];
    case "boolean": return false;
    case "string": return "";
    case "kinds": return blank(alternatives(schema)![0]!);
    default: return undefined;
  }
}

// The index of the alternative that fits a value.
export function alternativeOf(schema: Schema, value: unknown): number {
  const others = alternatives(schema) ?? [];
  const exact = others.findIndex((each) => problems(each, value).size === 0);
  return exact >= 0 ? exact : others.findIndex((each) => typeFits(kindOf(each), value));
}

function typeFits(kind: Kind, value: unknown): boolean {
  if (kind === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (kind === "array") return Array.isArray(value);
  if (kind === "number") return isNumber(value);
  if (kind === "integer") return Number.isInteger(value) || (value instanceof Exact && Number.isInteger(Number(value.text)));
  if (kind === "boolean" || kind === "string") return typeof value === kind;
  return true;
}

// The errors in a value, by their place: "/name/0".
export function problems(schema: Schema, value: unknown, at = "", found = new Map<string, string>()): Map<string, string> {
  const bad = (text: string): void => void (found.has(at) || found.set(at, text));
  const kind = kindOf(schema);
  if (kind === "choice") {
    if (!choicesOf(schema).some((each) => isSame(each.value, value))) bad(t.chooseOne);
    return found;
  }
  if (kind === "kinds") {
    const which = alternativeOf(schema, value);
    const chosen = alternatives(schema)![which];
    if (chosen) problems(chosen, value, at, found);
    else bad(t.chooseOne);
    return found;
  }
  if (schema.const !== undefined && !isSame(schema.const, value)) bad(t.mustBe(String(schema.const)));
  if (Array.isArray(schema.type) && schema.type.includes("null") && value === null) return found;
  if (kind === "json" && typeof value === "string" && (schema.type === "object" || schema.type === "array")) bad(t.notJson);
  else if (!typeFits(kind, value)) bad(kind === "integer" ? t.wholeNumber : kind === "number" ? t.aNumber : t.required);
  else if (kind === "string" && typeof value === "string") {
    if ([...value].length < (schema.minLength ?? 0)) bad(value === "" ? t.required : t.atLeastLong(schema.minLength!));
    else if ([...value].length > (schema.maxLength ?? Infinity)) bad(t.atMostLong(schema.maxLength!));
    else if (schema.pattern && !matches(schema.pattern, value)) bad(t.notOfPattern(schema.pattern));
    else if (schema.format === "email" && !/^[^@\s]+@[^@\s]+$/.test(value)) bad(t.notAnEmail);
    else if (schema.format === "uri" && !/^[a-z][a-z0-9+.-]*:\S+$/i.test(value)) bad(t.notAnAddress);
  } else if (isNumber(value)) {
    const size = Number(value);
    if (size < Number(schema.minimum ?? -Infinity) || size <= Number(schema.exclusiveMinimum ?? -Infinity)) bad(t.atLeast(String(schema.minimum ?? schema.exclusiveMinimum)));
    else if (size > Number(schema.maximum ?? Infinity) || size >= Number(schema.exclusiveMaximum ?? Infinity)) bad(t.atMost(String(schema.maximum ?? schema.exclusiveMaximum)));
  } else if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0)) bad(t.atLeastItems(schema.minItems!));
    else if (value.length > (schema.maxItems ?? Infinity)) bad(t.atMostItems(schema.maxItems!));
    value.forEach((each, i) => schema.items && problems(schema.items, each, `${at}/${i}`, found));
  } else if (kind === "object") {
    const members = value as Values;
    for (const [name, each] of Object.entries(schema.properties ?? {})) {
      const isRequired = schema.required?.includes(name) ?? false;
      if (members[name] !== undefined) problems(each, members[name], `${at}/${name}`, found);
      else if (isRequired) found.set(`${at}/${name}`, t.requiredHere);
    }
  }
  return found;
}

// The pattern comes from a tool. One that could keep the page busy is left to the server, which checks every value again.
function matches(pattern: string, value: string): boolean {
  const repeats = pattern.match(/[*+]|\{\d*,\d*\}/g) ?? [];
  if (repeats.length > 2 || /\)[*+?{]|\\\d/.test(pattern) || value.length > 2000) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true; // the server decides, because its dialect differs
  }
}
