import { useEffect, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { attempt, tell } from "../store/state";
import { v } from "../texts_of_views";

type State = "idle" | "asking" | "recording" | "listening"; // asking: for the microphone; listening: the recording is used

interface Props {
  testId: string;
  icon: Parameters<typeof Icon>[0]["name"];
  names: { idle: string; recording: string; listening: string };
  onBegin?: () => void;
  onSound: (sound: Blob, dropped: AbortSignal) => Promise<void>;
}

// A button that records: pressed once it begins, pressed again it hands over the recording. Escape drops it.
export function Recorder({ testId, icon, names, onBegin, onSound }: Props) {
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
    onBegin?.();
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
      void attempt(() => onSound(sound, mine.dropped.signal)).then(() => {
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
  const name = state === "idle" ? names.idle : state === "listening" ? names.listening : names.recording;
  return (
    <button type="button" className={`quiet square microphone ${state}`} data-testid={testId} data-state={state} aria-pressed={state === "recording"} aria-label={name} title={name}
      disabled={state === "listening"} onClick={press}>
      <Icon name={icon} />
    </button>
  );
}
