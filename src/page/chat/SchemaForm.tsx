import { useId } from "react";
import { t } from "../texts";

interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  oneOf?: { const?: unknown; title?: string }[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  format?: string;
  default?: unknown;
}
export type Values = Record<string, unknown>;

export function parseSchema(text: string | undefined): Schema | null {
  try {
    const schema = JSON.parse(text ?? "") as Schema;
    return schema && typeof schema === "object" && schema.properties ? schema : null;
  } catch {
    return null;
  }
}
export function defaultsOf(schema: Schema): Values {
  return Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([, each]) => each.default !== undefined).map(([name, each]) => [name, each.default]));
}

// A form made of a JSON Schema: one field for each property.
export function SchemaForm({ schema, values, onChange }: { schema: Schema; values: Values; onChange: (values: Values) => void }) {
  const set = (name: string, value: unknown): void => {
    const next = { ...values };
    if (value === undefined) delete next[name];
    else next[name] = value;
    onChange(next);
  };
  return (
    <div className="form">
      {Object.entries(schema.properties ?? {}).map(([name, each]) => (
        <Field key={name} name={name} schema={each} required={schema.required?.includes(name) ?? false} value={values[name]} onChange={(value) => set(name, value)} />
      ))}
    </div>
  );
}

function Field({ name, schema, required, value, onChange }: { name: string; schema: Schema; required: boolean; value: unknown; onChange: (value: unknown) => void }) {
  const id = useId();
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type;
  const choices = schema.enum?.map((each) => ({ value: each, label: String(each) })) ?? schema.oneOf?.map((each) => ({ value: each.const, label: each.title ?? String(each.const) }));
  const label = <label htmlFor={id}>{schema.title ?? name}{required && <span className="faint"> ({t.required})</span>}</label>;
  const hint = schema.description && <span className="hint" id={`${id}-hint`}>{schema.description}</span>;
  const common = { id, name, required, "aria-describedby": schema.description ? `${id}-hint` : undefined };
  if (choices) {
    return (
      <div className="field">{label}
        <select {...common} value={choices.findIndex((each) => each.value === value)} onChange={(e) => onChange(choices[Number(e.target.value)]?.value)}>
          <option value={-1} />
          {choices.map((each, i) => <option key={i} value={i}>{each.label}</option>)}
        </select>{hint}
      </div>
    );
  }
  if (type === "boolean") {
    return <div className="field check"><input type="checkbox" {...common} checked={value === true} onChange={(e) => onChange(e.target.checked)} />{label}{hint}</div>;
  }
  if (type === "integer" || type === "number") {
    return (
      <div className="field">{label}
        <input type="number" {...common} min={schema.minimum} max={schema.maximum} step={type === "integer" ? 1 : "any"} value={typeof value === "number" ? value : ""}
          onChange={(e) => onChange(e.target.value === "" ? undefined : Number(e.target.value))} />{hint}
      </div>
    );
  }
  if (type === "string" || type === undefined) {
    const text = typeof value === "string" ? value : "";
    const long = text.includes("\n") || text.length > 60 || (schema.maxLength ?? 0) > 120 || /text|content|command|code/.test(name);
    const kind = schema.format === "email" ? "email" : schema.format === "uri" ? "url" : schema.format === "date" ? "date" : "text";
    return (
      <div className="field">{label}
        {long ? <textarea {...common} rows={Math.min(12, text.split("\n").length + 1)} value={text} onChange={(e) => onChange(e.target.value)} />
          : <input type={kind} {...common} maxLength={schema.maxLength} value={text} onChange={(e) => onChange(e.target.value)} />}{hint}
      </div>
    );
  }
  return (
    <div className="field">{label}
      <textarea {...common} rows={3} defaultValue={value === undefined ? "" : JSON.stringify(value)} onChange={(e) => {
        try {
          onChange(e.target.value === "" ? undefined : JSON.parse(e.target.value));
        } catch { /* it is not finished yet */ }
      }} />{hint}
    </div>
  );
}
