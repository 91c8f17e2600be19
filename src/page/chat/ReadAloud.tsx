import { useEffect, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { attempt } from "../store/state";
import { textOf, Turn } from "../store/turn";
import { v } from "../texts_of_views";
import { request } from "../wire/api";

const MOST = 4000; // characters in one request for speech

// Reads a turn's answer aloud. For servers that can make speech.
export function ReadAloud({ turn }: { turn: Turn }) {
  const [playing, setPlaying] = useState(false);
  const ending = useRef<AbortController | null>(null);
  const stop = (): void => ending.current?.abort();
  useEffect(() => stop, []);
  const text = textOf(turn);
  if (text.trim() === "") return null;
  const play = (): void => {
    stop();
    const end = new AbortController();
    ending.current = end;
    setPlaying(true);
    void attempt(() => speak(text, end.signal)).then(() => {
      if (ending.current === end) setPlaying(false);
    });
  };
  return playing
    ? <button type="button" className="quiet tiny" data-testid="stop-reading" onClick={stop}><Icon name="stop" size={14} /><span>{v.stopReading}</span></button>
    : <button type="button" className="quiet tiny" data-testid="read-aloud" onClick={play}><Icon name="speaker" size={14} /><span>{v.readAloud}</span></button>;
}

// Piece by piece. The policy of the page allows no media elements: the samples are decoded and played as such.
async function speak(text: string, stop: AbortSignal): Promise<void> {
  const context = new AudioContext();
  try {
    const load = async (piece: string): Promise<AudioBuffer> => {
      const sound = await request("POST", "/audio/speech", { text: piece }, stop);
      return context.decodeAudioData(await sound.arrayBuffer()).catch(() => Promise.reject(new Error(v.notSound)));
    };
    const pieces = inPieces(text);
    let next = pieces[0] === undefined ? undefined : load(pieces[0]);
    for (let i = 1; next; i++) {
      const sound: AudioBuffer = await next;
      const piece = pieces[i];
      next = piece === undefined ? undefined : load(piece); // while this one is played
      next?.catch(() => undefined);
      await heard(context, sound, stop);
    }
  } finally {
    await context.close();
  }
}

function heard(context: AudioContext, sound: AudioBuffer, stop: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const source = new AudioBufferSourceNode(context, { buffer: sound });
    const onStop = (): void => {
      source.stop();
      reject(new DOMException("stopped", "AbortError"));
    };
    if (stop.aborted) return onStop();
    stop.addEventListener("abort", onStop);
    source.addEventListener("ended", () => {
      stop.removeEventListener("abort", onStop);
      resolve();
    });
    source.connect(context.destination);
    source.start();
  });
}

function withoutFences(markdown: string): string {
  let fence = "";
  return markdown.split("\n").filter((line) => {
    const mark = line.trimStart().slice(0, 3);
    const isFence = mark === "```" || mark === "~~~";
    const isCode = fence !== "" || isFence;
    if (isFence && (fence === "" || fence === mark)) fence = fence === "" ? mark : "";
    return !isCode;
  }).join("\n");
}

// Markdown as spoken text, without code and marks, cut between sentences.
function inPieces(markdown: string): string[] {
  const text = withoutFences(markdown).replace(/!?\[([^[\]]*)\]\([^()]*\)/g, "$1").replace(/^ *(#+|>|[-*+]|\d+\.) +/gm, "").replace(/[*_`]+/g, "");
  const pieces: string[] = [];
  for (let rest = text.trim(); rest !== "";) {
    let end = rest.length;
    if (end > MOST) {
      const part = rest.slice(0, MOST);
      end = Math.max(part.lastIndexOf(". "), part.lastIndexOf("\n")) + 1 || part.lastIndexOf(" ") + 1 || MOST;
    }
    pieces.push(rest.slice(0, end).trim());
    rest = rest.slice(end).trim();
  }
  return pieces.filter((piece) => piece !== "");
}
