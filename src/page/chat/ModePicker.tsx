import { KeyboardEvent, useCallback, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { useAway } from "../parts/hooks";
import { cache } from "../store/cache";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { t } from "../texts";
import type { ApprovalMode } from "../wire";

const MODES: ("" | ApprovalMode)[] = ["", "ask", "read_only", "plan", "auto", "approve_all", "deny_all"];

// The chat's approval mode, which the server keeps. Arrow keys move between the choices without choosing one. The mode that lets everything run has to be
// confirmed.
export function ModePicker() {
  const { tools } = cache.use("tools");
  const [open, setOpen] = useState(false);
  const [sure, setSure] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const close = useCallback(() => (setOpen(false), setSure(false)), []);
  useAway(place, open, close);
  const mode = useSelect(() => requests.settings().approval_mode ?? "");
  const server = tools?.approval_mode ?? "ask";
  const name = (each: string): string => (each === "" ? t.serversMode(t.shortModes[server] ?? server) : (t.shortModes[each] ?? each));
  const choose = (each: "" | ApprovalMode, isSure = false): void => {
    if (each === "approve_all" && mode !== each && !isSure) return setSure(true);
    void requests.configure({ approval_mode: each || null });
    close();
    place.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const onKey = (e: KeyboardEvent<HTMLElement>): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    const options = [...e.currentTarget.querySelectorAll<HTMLElement>("button")];
    options[(options.indexOf(document.activeElement as HTMLElement) + step + options.length) % options.length]?.focus();
  };
  return (
    <div className="picker modes" ref={place}>
      <button type="button" className="quiet mode" data-testid="mode" data-mode={mode || server} value={mode} disabled={server === "deny_all"} aria-haspopup="menu" aria-expanded={open}
        aria-label={`${t.mode}: ${name(mode)}`} title={`${t.mode}: ${name(mode)}`} onClick={() => (open ? close() : setOpen(true))} onKeyDown={(e) => {
          if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
          e.preventDefault();
          setOpen(true);
        }}><Icon name="shield" size={16} /><span className="title">{name(mode)}</span><Icon name="down" size={14} /></button>
      {open && !sure && (
        <div className="popover up" role="menu" aria-label={t.mode} onKeyDown={onKey}>
          {MODES.map((each) => (
            <button type="button" key={each} className="quiet mode-option" role="menuitemradio" aria-checked={each === mode} autoFocus={each === mode} data-testid="mode-option" data-value={each} onClick={() => choose(each)}>
              <span className="grow"><strong>{name(each)}</strong><span className="hint">{each === "" ? t.serversModeMeans : t.modesMean[each]}</span></span>{each === mode && <Icon name="check" size={14} />}
            </button>
          ))}
        </div>
      )}
      {open && sure && (
        <div className="popover up" role="alertdialog" aria-label={t.approveAllSure} data-testid="mode-sure">
          <p className="warning"><Icon name="alert" size={16} /><span>{t.approveAllWarning}</span></p>
          <div className="row">
            <button type="button" className="danger" data-testid="mode-confirm" onClick={() => choose("approve_all", true)}>{t.approveAllSure}</button>
            <button type="button" autoFocus data-testid="mode-cancel" onClick={() => (setSure(false), place.current?.querySelector<HTMLElement>("button")?.focus(), setOpen(false))}>{t.cancel}</button>
          </div>
        </div>
      )}
    </div>
  );
}
