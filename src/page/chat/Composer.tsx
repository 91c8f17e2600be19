import { ClipboardEvent, KeyboardEvent, lazy, Suspense, useEffect, useId, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { editLast } from "../keys/actions";
import { fit } from "../parts/hooks";
import { cache, isGone, known, readQueue } from "../store/cache";
import { navigation } from "../store/navigation";
import { addToDraft, draftName, draftOf, offerDraft, writeDraft } from "../store/open";
import * as requests from "../store/requests";
import { attempt, tell, useSelect } from "../store/state";
import type { Turn } from "../store/turn";
import { t } from "../texts";
import { call, chatPath } from "../wire/api";
import { Attachments } from "./Attachments";
import { attach, attachMentioned, chatToFill, clear, mentionsIn, uploadsOf, useUploads } from "./uploads";
import { ModelPicker } from "./ModelPicker";
import { ModePicker } from "./ModePicker";
import { useCompletion } from "./useCompletion";

// Most servers have nothing that listens.
const Dictation = lazy(() => import("./Dictation").then((part) => ({ default: part.Dictation })));

const Talk = lazy(() => import("./Talk").then((part) => ({ default: part.Talk })));

const LONG = 20_000; // characters: a longer paste becomes a file

// Where people write. What is written is kept when they look at another chat, or load the page again. A chat that begins here keeps its box.
export function Composer({ chat, running }: { chat: string; running: Turn | undefined }) {
  const { wish, dropping, dropped } = navigation.use("wish", "dropping", "dropped");
  const { models } = cache.use("models");
  const queue = useSelect(() => cache.open?.queue);
  const model = useSelect(() => requests.settings().model ?? "");
  const [text, setText] = useState(() => draftOf(chat));
  const [caret, setCaret] = useState(text.length);
  const [at, setAt] = useState(0);
  const [closed, setClosed] = useState(false); // the suggestions
  const uploads = useUploads(chat);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const sending = useRef(false);
  const stored = useRef({ chat, text }); // the draft as this window knows it
  const received = useRef<string | null>(null); // a text of another window that is about to be drawn
  const wished = useRef(""); // the last text that was given to the box
  const id = useId();
  const found = useCompletion(text, caret);
  const suggestions = closed ? [] : found;
  const gone = useSelect(isGone);
  const coming = uploads.some((each) => !each.id && !each.failure);
  useEffect(() => {
    const was = stored.current;
    // To store a text of another window, perhaps an older one, would take away what has been typed there since.
    const isReceived = received.current !== null && was.chat === chat;
    if (text === received.current) received.current = null;
    if (!isReceived) {
      stored.current = { chat, text };
      if (was.chat !== chat) writeDraft(was.chat, "", was.text);
      if (was.chat !== chat && !text && draftOf(chat)) write(draftOf(chat)); // came back before the chat was drawn
      else if (was.chat !== chat || was.text !== text) writeDraft(chat, text, was.text);
    }
    fit(box.current, window.innerHeight / 3);
  }, [text, chat]);
  // Shows what another window writes, unless something else is written here. A message that was refused comes back in this way too.
  useEffect(() => {
    const onStorage = (e: StorageEvent): void => {
      const shown = received.current ?? box.current?.value; // what was received may not have been drawn yet
      if (e.key !== draftName(chat) || shown !== (e.oldValue ?? "")) return;
      received.current = e.newValue ?? "";
      stored.current = { chat, text: received.current };
      setText(received.current);
      setCaret(received.current.length);
    };
    addEventListener("storage", onStorage);
    return () => removeEventListener("storage", onStorage);
  }, [chat]);
  useEffect(() => {
    if (!matchMedia("(pointer: coarse)").matches) box.current?.focus();
    box.current?.setSelectionRange(box.current.value.length, box.current.value.length);
  }, [chat]);
  // A pressed example is written here, to be sent or changed. It replaces only another one.
  useEffect(() => {
    if (wish === null) return;
    if (text.trim() === "" || text === wished.current) write((wished.current = wish));
    else insert(wish);
    navigation.set({ wish: null });
    box.current?.focus();
  }, [wish]);

  const put: typeof setText = (next) => {
    received.current = null;
    setText(next);
  };
  const write = (words: string): void => {
    put(words);
    setCaret(words.length);
  };
  const send = async (): Promise<void> => {
    const message = text.trim() === "" ? "" : text;
    if (!message || coming) return;
    if (gone) return tell(t.noSuchChat(chat));
    if (sending.current) return tell(t.stillSending);
    if (uploads.some((each) => each.failure)) return tell(t.uploadInTheWay);
    sending.current = true;
    write(""); // what is written from now on is another message
    try {
      const to = known(chat || ((await chatToFill()) ?? "")); // people may look at others meanwhile
      if (!to) return void (offerDraft(chat, message) || put((now) => `${message}\n${now}`));
      if (mentionsIn(message).length > 0 && !(await attachMentioned(to.id, message))) return void requests.giveBack(to, message, [], t.uploadInTheWay);
      const ids = uploadsOf(to.id).filter((each) => each.id).map((each) => each.id);
      if (await requests.send(to, message, ids)) clear(to.id, ids);
    } finally {
      sending.current = false;
    }
  };
  const take = (files: File[]): void => {
    if (files.length > 0) void attach(files);
  };
  // Reads the box, since people may have written on while the words were recorded.
  const insert = (words: string): void => {
    if (!box.current) return;
    const { value, selectionStart: from, selectionEnd: to } = box.current;
    const before = value.slice(0, from), after = value.slice(to);
    put(`${before}${/\S$/.test(before) ? " " : ""}${words}${/^\S/.test(after) ? " " : ""}${after}`);
    box.current.focus();
  };
  const onPaste = (e: ClipboardEvent): void => {
    const pasted = e.clipboardData.getData("text");
    const files = [...e.clipboardData.files];
    if (files.length > 0) {
      e.preventDefault();
      take(files);
    } else if (pasted.length > LONG) {
      e.preventDefault();
      tell(t.pastedAs("pasted.txt"));
      take([new File([pasted], "pasted.txt", { type: "text/plain" })]);
    }
  };
  useEffect(() => {
    if (dropped.length === 0) return;
    take(dropped);
    navigation.set({ dropped: [] });
  }, [dropped]);
  const choose = (index: number): void => {
    const chosen = suggestions[index];
    if (!chosen) return;
    write(chosen.take());
    setAt(0);
    void chosen.attach?.();
    box.current?.focus();
  };
  const onKey = (e: KeyboardEvent<HTMLTextAreaElement>): void => {
    const listed = suggestions.length > 0;
    if (listed && (e.key === "ArrowDown" || e.key === "ArrowUp")) setAt((at + (e.key === "ArrowDown" ? 1 : suggestions.length - 1)) % suggestions.length);
    else if (listed && (e.key === "Enter" || e.key === "Tab") && !e.shiftKey) choose(Math.min(at, suggestions.length - 1));
    else if (listed && e.key === "Escape") setClosed(true);
    else if (e.key === "Escape" && running) void requests.stop(running);
    else if (e.key === "ArrowUp" && text === "" && !e.altKey && !e.ctrlKey && !e.shiftKey) editLast();
    else if (e.key === "Enter" && !e.shiftKey) void send();
    else return;
    e.preventDefault();
  };
  return (
    <form className={`composer${dropping ? " dropping" : ""}`} onSubmit={(e) => {
      e.preventDefault();
      void send();
    }}>
      {queue && queue.length > 0 && (
        <section className="queue" aria-label={t.queued} data-testid="queue">
          <h3>{t.queued}</h3>
          <ol>{queue.map((each) => <Queued key={each.id} chat={chat} id={each.id} text={each.user_message} />)}</ol>
        </section>
      )}
      {suggestions.length > 0 && (
        <ul className="suggestions popover" id={`${id}-list`} role="listbox" aria-label={t.suggestions} data-testid="suggestions">
          {suggestions.map((each, i) => (
            <li key={each.key} id={`${id}-${i}`} role="option" aria-selected={i === at} onPointerDown={(e) => e.preventDefault()} onClick={() => choose(i)}>
              <Icon name={each.icon} size={16} /><strong>{each.name}</strong><span className="faint">{each.more}</span>
            </li>
          ))}
        </ul>
      )}
      <div className="composer-box">
        <Attachments chat={chat} uploads={uploads} />
        <textarea ref={box} rows={1} data-testid="composer" aria-label={t.write} placeholder={running ? t.writeNext : t.write} value={text} dir="auto" onPaste={onPaste}
          aria-autocomplete="list" aria-controls={suggestions.length > 0 ? `${id}-list` : undefined} aria-activedescendant={suggestions.length > 0 ? `${id}-${at}` : undefined}
          onChange={(e) => {
            put(e.target.value);
            setCaret(e.target.selectionStart);
            setClosed(false);
            setAt(0);
          }} onSelect={(e) => setCaret(e.currentTarget.selectionStart)} onKeyDown={onKey} />
        <div className="row">
          <button type="button" className="quiet square" aria-label={t.attach} title={t.attach} data-testid="attach" onClick={() => picker.current?.click()}><Icon name="attach" /></button>
          <input ref={picker} type="file" multiple hidden data-testid="file" onChange={(e) => {
            take([...(e.target.files ?? [])]);
            e.target.value = "";
          }} />
          {models.audio?.transcription && <Suspense fallback={null}><Dictation onText={insert} />{models.audio.talk && <Talk chat={chat} model={models.audio.talk} running={running} />}</Suspense>}
          <ModelPicker value={model} onChange={(name) => void requests.configure({ model: name || null })} />
          <ModePicker />
          <button type="button" className="quiet square" data-testid="open-options" aria-label={t.chatOptions} title={t.chatOptions} onClick={() => navigation.set({ dialog: "options" })}><Icon name="settings" size={17} /></button>
          <span className="grow" />
          {running && <button type="button" className="square stop" data-testid="stop" aria-label={t.stop} title={t.withKey(t.stop, "Esc")} onClick={() => void requests.stop(running)}><Icon name="stop" /></button>}
          <button type="submit" className="primary square" data-testid="send" aria-label={running ? t.sendNext : t.send} title={running ? t.sendNext : t.send} disabled={text.trim() === "" || coming || gone}><Icon name="send" /></button>
        </div>
      </div>
    </form>
  );
}

// A message that waits for its turn. It can be changed until that begins; a change that comes too late is added to the draft.
function Queued({ chat, id, text }: { chat: string; id: string; text: string }) {
  const [typed, setTyped] = useState<string | null>(null); // a change that the server does not have yet
  const saving = useRef({ words: text, done: Promise.resolve(false) });
  const path = `${chatPath(chat)}/queue/${id}`;
  const save = (): void => {
    if (typed === null || typed === text) return setTyped(null);
    const done = attempt(async () => {
      await call("PATCH", path, { user_message: typed });
      const of = known(chat);
      if (of) await readQueue(of);
    });
    saving.current = { words: typed, done };
    void done.then((isSaved) => isSaved && setTyped((now) => (now === typed ? null : now)));
  };
  const leave = useRef<() => void>();
  leave.current = () => {
    if (typed === null) return;
    if (known(chat)?.queue.some((each) => each.id === id)) return save(); // another chat is shown
    const { words, done } = saving.current;
    void (words === typed ? done : Promise.resolve(false)).then((isSaved) => {
      if (isSaved) return;
      addToDraft(chat, typed);
      tell(t.tooLateToChange);
    });
  };
  useEffect(() => () => leave.current!(), []);
  const remove = (): void => {
    setTyped(null);
    void attempt(() => call("DELETE", path));
  };
  return (
    <li>
      <textarea ref={(area) => fit(area)} rows={1} aria-label={t.queued} value={typed ?? text} dir="auto" data-testid="queued" onChange={(e) => setTyped(e.target.value)} onKeyDown={(e) => {
        if (e.key === "Enter" && !e.shiftKey) e.preventDefault(), e.currentTarget.blur();
      }} onBlur={save} />
      <button type="button" className="quiet square small" aria-label={t.removeQueued} title={t.removeQueued} data-testid="unqueue" onClick={remove}><Icon name="close" size={15} /></button>
    </li>
  );
}
