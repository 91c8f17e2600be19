import { tell } from "../store/state";
import { v } from "../texts_of_views";
import { transcribe } from "../wire/api";
import { Recorder } from "./Recorder";

// A microphone button: what is said becomes text.
export function Dictation({ onText }: { onText: (text: string) => void }) {
  const onSound = async (sound: Blob, dropped: AbortSignal): Promise<void> => {
    const text = await transcribe(sound, dropped);
    if (!dropped.aborted) text.trim() === "" ? tell(v.nothingHeard) : onText(text.trim());
  };
  return <Recorder testId="microphone" icon="microphone" names={{ idle: v.dictate, recording: v.stopDictation, listening: v.transcribing }} onSound={onSound} />;
}
