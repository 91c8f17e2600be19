import { useEffect, useRef, useState } from "react";
import { t } from "../texts";
import { actions } from "./actions";

export function Palette({ onClose }: { onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const found = actions().filter((each) => each.name.toLowerCase().includes(query.toLowerCase())).slice(0, 12);
  const run = (index: number): void => {
    onClose();
    found[index]?.run();
  };
  return (
    <Dialog label={t.palette} onClose={onClose} testid="palette">
      <input autoFocus role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={`palette-${at}`} aria-label={t.palette} placeholder={t.palette} value={query}
        onChange={(e) => {
          setQuery(e.target.value);
          setAt(0);
        }} onKeyDown={(e) => {
          if (e.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
          if (e.key === "ArrowUp") setAt(Math.max(at - 1, 0));
          if (e.key === "Enter") run(at);
        }} />
      <ul id="palette-list" role="listbox" aria-label={t.palette}>
        {found.map((each, i) => <li key={each.name + i} id={`palette-${i}`} role="option" aria-selected={i === at} onClick={() => run(i)}>{each.name}</li>)}
      </ul>
    </Dialog>
  );
}

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={t.help} onClose={onClose} testid="help">
      <h2>{t.help}</h2>
      <dl className="facts">{t.keys.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <button type="button" autoFocus onClick={onClose}>{t.close}</button>
    </Dialog>
  );
}

function Dialog({ label, testid, onClose, children }: { label: string; testid: string; onClose: () => void; children: React.ReactNode }) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    place.current?.showModal();
    return () => before?.focus();
  }, []);
  return (
    <dialog ref={place} aria-label={label} data-testid={testid} onClose={onClose} onClick={(e) => e.target === place.current && onClose()}>{children}</dialog>
  );
}
