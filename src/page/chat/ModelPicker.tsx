import { useCallback, useId, useMemo, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { useAway } from "../parts/hooks";
import { cache } from "../store/cache";
import { t } from "../texts";

interface Choice {
  name: string; // empty: the server's default
  label: string;
  provider: string;
  window: number;
}

// All models by provider, found by any part of their names.
export function ModelPicker({ value, onChange, label, testid = "model" }: { value: string; onChange: (name: string) => void; label?: string; testid?: string }) {
  const { models } = cache.use("models");
  const [open, setOpen] = useState(false);
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const place = useRef<HTMLDivElement>(null);
  const id = useId();
  const close = useCallback(() => setOpen(false), []);
  useAway(place, open, close);
  const found = useMemo(() => {
    const all: Choice[] = models.models.map((each) => ({ name: each.name, label: each.name, provider: each.provider, window: each.context_window ?? 0 }));
    all.sort((a, b) => a.provider.localeCompare(b.provider) || a.name.localeCompare(b.name));
    const words = query.toLowerCase().split(/\s+/);
    const fits = all.filter((each) => words.every((word) => each.label.toLowerCase().includes(word) || each.provider.toLowerCase().includes(word)));
    return query ? fits : [{ name: "", label: t.theModel(models.default), provider: "", window: 0 }, ...fits];
  }, [models, query, t.noModel]);
  const choose = (choice: Choice | undefined): void => {
    if (!choice) return;
    onChange(choice.name);
    setOpen(false);
    place.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const shown = value || models.default || t.model;
  return (
    <div className="picker" ref={place}>
      <button type="button" className={label ? "" : "quiet"} data-testid={testid} aria-haspopup="listbox" aria-expanded={open} aria-label={`${t.model}: ${value || models.default}`} onClick={() => {
        setQuery("");
        setAt(0);
        setOpen(!open);
      }}><span className="title">{label ?? <><span className="only-wide">{shown.slice(0, shown.indexOf("/") + 1)}</span>{shown.slice(shown.indexOf("/") + 1)}</>}</span><Icon name="down" size={14} /></button>
      {open && (
        <div className="popover up">
          <input autoFocus role="combobox" aria-expanded="true" aria-controls={`${id}-list`} aria-activedescendant={`${id}-${at}`} aria-label={t.findModel} placeholder={t.findModel} data-testid={`${testid}-search`}
            value={query} onChange={(e) => {
              setQuery(e.target.value);
              setAt(0);
            }} onKeyDown={(e) => {
              if (e.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
              else if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
              else if (e.key === "Enter") choose(found[at]);
              else return;
              e.preventDefault();
            }} />
          <ul id={`${id}-list`} role="listbox" aria-label={t.model}>
            {found.map((each, i) => (
              <li key={each.name} id={`${id}-${i}`} role="option" aria-selected={i === at} data-testid="model-option" onPointerMove={() => setAt(i)} onClick={() => choose(each)}>
                {each.provider && each.provider !== found[i - 1]?.provider && <span className="group">{each.provider}</span>}
                <span className="row"><span className="grow">{each.label}</span>{each.window > 0 && <span className="faint">{t.window(each.window)}</span>}{each.name === value && <Icon name="check" size={14} />}</span>
              </li>
            ))}
            {found.length === 0 && <li className="faint" role="option" aria-selected="false" aria-disabled="true">{t.noModel}</li>}
          </ul>
        </div>
      )}
    </div>
  );
}
