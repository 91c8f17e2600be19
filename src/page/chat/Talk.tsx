import { useEffect, useRef } from "react";
import { known } from "../store/cache";
import { stop } from "../store/requests";
import { tell } from "../store/state";
import { sounds, Turn } from "../store/turn";
import { v } from "../texts_of_views";
import { begin, chatPath, request, transcribe } from "../wire/api";
import { Recorder } from "./Recorder";
import { chatToFill } from "./uploads";

const RATE = 24_000; // samples in a second, of 16 bits
const MOST = 180; // seconds of a recording

// A button that talks with a model: what is said is a message with its recording, and the answer is heard while it comes. To press it while the model speaks
// stops the model.
export function Talk({ chat, model, running }: { chat: string; model: string; running: Turn | undefined }) {
  const player = useRef<Player | null>(null);
  const silence = (): void => {
    player.current?.end();
    player.current = null;
  };
  useEffect(() => silence, [chat]);
  const last = useRef(running);
  useEffect(() => {
    if (!running && last.current?.status === "CANCELLED") silence();
    last.current = running;
  }, [running]);
  const onBegin = (): void => {
    silence();
    if (running) void stop(running);
  };
  const onSound = async (sound: Blob, dropped: AbortSignal): Promise<void> => {
    const wav = await asWav(sound);
    const text = (await transcribe(wav, dropped)).trim();
    if (text === "" || dropped.aborted) return void (text === "" && tell(v.nothingHeard));
    const to = known(chat || ((await chatToFill()) ?? ""));
    if (!to || dropped.aborted) return;
    const file = (await (await request("POST", `${chatPath(to.id)}/files?name=said.wav`, wav, dropped)).json()) as { id: string };
    silence();
    player.current = new Player(to.id);
    await begin(`${chatPath(to.id)}/interactions`, { user_message: text, attachments: [file.id], model, if_running: "cancel" });
  };
  return <Recorder testId="talk" icon="speaker" names={{ idle: v.talk, recording: v.stopTalking, listening: v.transcribing }} onBegin={onBegin} onSound={onSound} />;
}

// Plays what a model speaks in one chat, each piece after the one before.
class Player {
  private readonly context = new AudioContext({ sampleRate: RATE });
  private until = 0;

  constructor(chat: string) {
    sounds.hear = (of, samples) => {
      if (of === chat) this.play(samples);
    };
  }
  private play(samples: string): void {
    const bytes = Uint8Array.from(atob(samples), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const count = bytes.length >> 1;
    if (count === 0) return;
    const buffer = this.context.createBuffer(1, count, RATE);
    const channel = buffer.getChannelData(0);
    for (let i = 0; i < count; i++) channel[i] = view.getInt16(2 * i, true) / 0x8000;
    const source = new AudioBufferSourceNode(this.context, { buffer });
    source.connect(this.context.destination);
    this.until = Math.max(this.until, this.context.currentTime);
    source.start(this.until);
    this.until += buffer.duration;
  }
  end(): void {
    sounds.hear = () => undefined;
    void this.context.close();
  }
}

// The recording as models hear it: a WAV file of one channel.
async function asWav(sound: Blob): Promise<Blob> {
  const context = new OfflineAudioContext(1, RATE, RATE); // decodes to this rate
  const decoded = await context.decodeAudioData(await sound.arrayBuffer());
  const count = Math.min(decoded.length, MOST * RATE);
  if (decoded.length > count) tell(v.talkTooLong(MOST / 60));
  const mixed = new Float32Array(count);
  for (let c = 0; c < decoded.numberOfChannels; c++) {
    const channel = decoded.getChannelData(c);
    for (let i = 0; i < count; i++) mixed[i]! += channel[i]! / decoded.numberOfChannels;
  }
  const view = new DataView(new ArrayBuffer(44 + 2 * count));
  const text = (at: number, words: string): void => [...words].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * count, true);
  text(8, "WAVEfmt ");
  [16, 1 | (1 << 16), RATE, 2 * RATE, 2 | (16 << 16)].forEach((number, i) => view.setUint32(16 + 4 * i, number, true));
  text(36, "data");
  view.setUint32(40, 2 * count, true);
  for (let i = 0; i < count; i++) view.setInt16(44 + 2 * i, Math.max(-1, Math.min(1, mixed[i]!)) * 0x7fff, true);
  return new Blob([view.buffer], { type: "audio/wav" });
}
