import { useId, useState } from "react";
import { Icon } from "../parts/Icon";
import { t } from "../texts";
import { isNumber, numberOf, parseExact, writeExact } from "./exact";
import { spelled } from "./hidden";
import { alternativeOf, alternatives, blank, choicesOf, isSame, kindOf, Schema } from "./schema";
import type { Values } from "./values";

export { defaultsOf, parseSchema, problems } from "./schema";

interface FormProps {
  schema: Schema;
  values: Values;
  wrong: Map<string, string>; // by place; empty until somebody tries to send the form
  onChange: (values: Values) => void;
  at?: string;
}

// A form for a JSON Schema, with a field for each property of any kind. Errors are shown beside the fields.
export function SchemaForm({ schema, values, wrong, onChange, at = "" }: FormProps) {
  const set = (name: string, value: unknown): void => {
    const next = { ...values };
    if (value === undefined) delete next[name];
    else next[name] = value;
    onChange(next);
  };
  return (
    <div className="form">
      {Object.entries(schema.properties ?? {}).map(([name, each]) => (
        <Field key={name} name={name} at={`${at}/${name}`} schema={each} required={schema.required?.includes(name) ?? false} value={values[name]} wrong={wrong}
          onChange={(value) => set(name, value)} />
      ))}
    </div>
  );
}

interface FieldProps {
  name: string;
  at: string;
  schema: Schema;
  required: boolean;
  value: unknown;
  wrong: Map<string, string>;
  onChange: (value: unknown) => void;
}

function Field(props: FieldProps) {
  const { name, at, schema, required, value, wrong, onChange } = props;
  const id = useId();
  const [hasCrLf] = useState(() => typeof value === "string" && value.includes("\r\n") && !/(?<!\r)\n|\r(?!\n)/.test(value));
  const kind = kindOf(schema);
  const problem = wrong.get(at);
  const called = spelled(schema.title ?? name);
  const label = <label htmlFor={id}>{called}{required && <span className="faint"> ({t.required})</span>}</label>;
  const below = (
    <>
      {schema.description && <span className="hint" id={`${id}-hint`}>{spelled(schema.description)}</span>}
      {problem && <span className="problem" id={`${id}-problem`} data-testid="problem" data-at={at}>{problem}</span>}
    </>
  );
  const described = [schema.description ? `${id}-hint` : "", problem ? `${id}-problem` : ""].filter(Boolean).join(" ") || undefined;
  const common = { id, name, "aria-required": required, "aria-describedby": described, "aria-invalid": problem ? true : undefined };
  const group = (inside: JSX.Element, more?: JSX.Element): JSX.Element => (
    <fieldset className="field" aria-describedby={described}><legend>{called}{required && <span className="faint"> ({t.required})</span>}{more}</legend>{below}{inside}</fieldset>
  );
  switch (kind) {
    case "choice": {
      const choices = choicesOf(schema);
      return (
        <div className="field">{label}
          <select {...common} value={choices.findIndex((each) => isSame(each.value, value))} onChange={(e) => onChange(choices[Number(e.target.value)]?.value)}>
            <option value={-1} />
            {choices.map((each, i) => <option key={i} value={i}>{spelled(each.label)}</option>)}
          </select>{below}
        </div>
      );
    }
    case "kinds": return group(<Kinds {...props} />);
    case "object": {
      if (value === undefined && !required) return group(<button type="button" className="quiet" onClick={() => onChange(blank(schema))}><Icon name="plus" size={14} /> {t.addPart}</button>);
      const members = typeof value === "object" && value !== null ? (value as Values) : {};
      return group(<SchemaForm schema={schema} values={members} wrong={wrong} at={at} onChange={onChange} />,
        required ? undefined : <button type="button" className="quiet tiny" aria-label={`${t.removePart}: ${called}`} onClick={() => onChange(undefined)}><Icon name="close" size={14} /></button>);
    }
    case "array": return group(<Items {...props} />);
    case "boolean":
      return <div className="field check"><input type="checkbox" {...common} checked={value === true} onChange={(e) => onChange(e.target.checked)} />{label}{below}</div>;
    case "integer":
    case "number":
      return (
        <div className="field">{label}
          <input inputMode={kind === "integer" ? "numeric" : "decimal"} type="number" {...common} min={schema.minimum} max={schema.maximum}
            step={kind === "integer" ? 1 : "any"} value={isNumber(value) ? String(value) : ""}
            onChange={(e) => onChange(e.target.value === "" ? undefined : numberOf(e.target.value))} />{below}
        </div>
      );
    case "string": {
      const text = typeof value === "string" ? value : "";
      const long = text.includes("\n") || text.length > 60 || (schema.maxLength ?? 0) > 5000 || /text|content|command|code/.test(name);
      const type = { email: "email", uri: "url", date: "date", time: "time", "date-time": "text" }[schema.format ?? ""] ?? "text";
      // A field makes every line break a \n.
      const change = (next: string): void => onChange(next === "" && !required ? undefined : hasCrLf ? next.replace(/\n/g, "\r\n") : next);
      return (
        <div className="field">{label}
          {long ? <textarea {...common} dir="auto" rows={Math.min(12, text.split("\n").length + 1)} value={text} onChange={(e) => change(e.target.value)} />
            : <input type={type} {...common} dir="auto" value={text} onChange={(e) => change(e.target.value)} />}{below}
        </div>
      );
    }
    default: return <Json {...props} id={id} label={label} below={below} described={described} />;
  }
}

// A choice between several kinds of value, and the fields of the chosen one.
function Kinds({ name, at, schema, required, value, wrong, onChange }: FieldProps) {
  const others = alternatives(schema)!;
  const [which, setWhich] = useState(() => Math.max(0, value === undefined ? 0 : alternativeOf(schema, value)));
  const chosen = others[which]!;
  return (
    <>
      <select aria-label={schema.title ?? name} data-testid="kind" value={which} onChange={(e) => {
        const next = Number(e.target.value);
        setWhich(next);
        onChange(blank(others[next]!));
      }}>{others.map((each, i) => <option key={i} value={i}>{spelled(each.title ?? each.description ?? kindOf(each))}</option>)}</select>
      <Field key={which} name={chosen.title ?? name} at={at} schema={chosen} required={required} value={value} wrong={wrong} onChange={onChange} />
    </>
  );
}

function Items({ name, at, schema, value, wrong, onChange }: FieldProps) {
  const items = Array.isArray(value) ? (value as unknown[]) : [];
  const put = (index: number, next: unknown): void => onChange(items.map((each, i) => (i === index ? next : each)));
  return (
    <>
      <ol className="items">
        {items.map((each, i) => (
          <li key={i}>
            <Field name={`${name} ${i + 1}`} at={`${at}/${i}`} schema={schema.items!} required value={each} wrong={wrong}
              onChange={(next) => put(i, next === undefined ? null : next)} />
            <button type="button" className="quiet tiny" aria-label={`${t.removePart}: ${name} ${i + 1}`}
              onClick={() => onChange(items.filter((_, j) => j !== i))}><Icon name="close" size={14} /></button>
          </li>
        ))}
      </ol>
      <button type="button" className="quiet" data-testid="add-item" disabled={items.length >= (schema.maxItems ?? Infinity)}
        onClick={() => onChange([...items, blank(schema.items!)])}><Icon name="plus" size={14} /> {t.addItem}</button>
    </>
  );
}

// A value that no field fits, edited as JSON. Text that is not JSON yet is kept as text, and the check reports it.
function Json({ name, value, onChange, id, label, below, described }: FieldProps & { id: string; label: JSX.Element; below: JSX.Element; described: string | undefined }) {
  const [text, setText] = useState(() => (value === undefined ? "" : writeExact(value, 2)));
  return (
    <div className="field">{label}
      <textarea id={id} name={name} aria-describedby={described} rows={Math.min(10, text.split("\n").length + 1)} value={text} onChange={(e) => {
        setText(e.target.value);
        try {
          onChange(e.target.value === "" ? undefined : parseExact(e.target.value));
        } catch {
          onChange(e.target.value);
        }
      }} />{below}
    </div>
  );
}
