import { ReactNode, useEffect, useRef } from "react";
import { spelled } from "../chat/hidden";
import { Icon } from "../parts/Icon";
import { useOpen } from "../store/cache";
import { closeBeside, navigation, showBeside } from "../store/navigation";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { ChatMap } from "./ChatMap";
import { FileList } from "./FileList";
import { FileView } from "./FileView";
import { Frame } from "./Frame";
import { Given } from "./Given";
import { LongText } from "./LongText";

// What stands beside the chat: its files with who wrote them, its messages as a map, a long output, or a preview.
export function Beside() {
  const { beside } = navigation.use("beside");
  const chat = useOpen()?.id;
  const place = useRef<HTMLElement>(null);
  useEffect(() => place.current?.querySelector<HTMLElement>("[data-first], button[aria-current=page]")?.focus({ preventScroll: true }), [beside?.kind]);
  // Escape closes it from within, and when a press has left the focus nowhere.
  useEffect(() => {
    const onKey = (e: KeyboardEvent): void => {
      const { activeElement } = document;
      if (e.key !== "Escape" || e.defaultPrevented || (activeElement !== document.body && !place.current?.contains(activeElement))) return;
      e.preventDefault();
      closeBeside();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  // What belongs to another chat goes with it.
  const shown = beside && (beside.kind === "preview" || beside.kind === "text" || chat) ? beside : null;
  if (!shown) return null;
  const tab = (kind: "files" | "map", name: string): ReactNode => (
    <button type="button" className="quiet tiny" data-testid={`beside-${kind}`} aria-current={shown.kind === kind ? "page" : undefined} onClick={() => showBeside({ kind })}>{name}</button>
  );
  return (
    <aside ref={place} className="beside" data-testid="beside" data-kind={shown.kind} aria-label={v.beside}>
      <header className="row">
        {chat && tab("files", v.filesTab)}
        {chat && tab("map", v.mapTab)}
        <strong className="title grow" dir="auto">{"title" in shown ? spelled(shown.title) : "path" in shown ? spelled(shown.path) : ""}</strong>
        <button type="button" className="quiet square small" data-testid="close-beside" aria-label={t.close} title={t.close} onClick={closeBeside}><Icon name="close" size={16} /></button>
      </header>
      <div className="beside-body" tabIndex={-1}>
        {shown.kind === "files" && chat && <FileList chat={chat} />}
        {shown.kind === "map" && <ChatMap />}
        {shown.kind === "file" && chat && <FileView key={`${chat}/${shown.path}`} chat={chat} path={shown.path} />}
        {shown.kind === "text" && <LongText text={shown.text} />}
        {shown.kind === "preview" && <Frame html={shown.html} title={shown.title} />}
        {shown.kind === "given" && chat && <Given key={shown.id} chat={chat} id={shown.id} name={shown.title} type={shown.type} />}
      </div>
    </aside>
  );
}
