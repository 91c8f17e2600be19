import { useEffect, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { attempt, tell } from "../store/state";
import { v } from "../texts_of_views";
import { transcribe } from "../wire/api";

type State = "idle" | "asking" | "recording" | "listening"; // asking: for the microphone; listening: the server makes text

// A microphone button: pressed once it records, pressed again the recording becomes text. Escape drops it.
export function Dictation({ onText }: { onText: (text: string) => void }) {
  const [state, setState] = useState<State>("idle");
  const current = useRef<{ recorder?: MediaRecorder; dropped: AbortController } | null>(null);
  const drop = (): void => {
    const { recorder, dropped } = current.current ?? {};
    current.current = null;
    dropped?.abort();
    if (recorder?.state === "recording") recorder.stop();
    setState("idle");
  };
  useEffect(() => drop, []); // recording ends when another chat is shown
  useEffect(() => {
    if (state === "idle") return undefined;
    const onKey = (e: KeyboardEvent): void => {
      if (e.key !== "Escape") return;
      e.preventDefault();
      e.stopPropagation(); // so that it stops no run
      drop();
    };
    addEventListener("keydown", onKey, true);
    return () => removeEventListener("keydown", onKey, true);
  }, [state]);

  const record = async (): Promise<void> => {
    const mine = { recorder: undefined as MediaRecorder | undefined, dropped: new AbortController() };
    current.current = mine;
    setState("asking");
    let microphone: MediaStream;
    try {
      if (!navigator.mediaDevices) throw new DOMException(v.microphoneInsecure, "NotAllowedError");
      microphone = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch (error) {
      if (current.current === mine) drop();
      return tell(v.microphoneRefused(error instanceof Error ? error.message : String(error)));
    }
    const release = (): void => microphone.getTracks().forEach((track) => track.stop());
    if (mine.dropped.signal.aborted) return release();
    const recorder = new MediaRecorder(microphone);
    mine.recorder = recorder;
    const pieces: Blob[] = [];
    recorder.addEventListener("dataavailable", (e) => pieces.push(e.data));
    recorder.addEventListener("stop", () => {
      release();
      if (mine.dropped.signal.aborted) return;
      setState("listening");
      const sound = new Blob(pieces, { type: recorder.mimeType });
      void attempt(async () => {
        const text = await transcribe(sound, mine.dropped.signal);
        if (!mine.dropped.signal.aborted) text.trim() === "" ? tell(v.nothingHeard) : onText(text.trim());
      }).then(() => {
        if (current.current === mine) drop();
      });
    });
    recorder.start();
    setState("recording");
  };
  const press = (): void => {
    if (state === "idle") void record();
    else if (state === "asking") drop();
    else current.current?.recorder?.stop();
  };
  const name = state === "idle" ? v.dictate : state === "listening" ? v.transcribing : v.stopDictation;
  return (
    <button type="button" className={`quiet square microphone ${state}`} data-testid="microphone" data-state={state} aria-pressed={state === "recording"} aria-label={name} title={name}
      disabled={state === "listening"} onClick={press}>
      <Icon name="microphone" />
    </button>
  );
}
