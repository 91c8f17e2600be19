import { useState } from "react";
import { Icon } from "../parts/Icon";
import { cache, trust } from "../store/cache";
import { v } from "../texts_of_views";
import type { Instructions } from "../wire";
import { spelled, Visible } from "./hidden";

type File = Instructions["files"][number];

const putOff = (file: File): boolean => sessionStorage.getItem(`instructions:${file.path}`) === file.digest;

// A file of instructions that tools could have written: models get none of it before a person allows it. The person
// allows the text shown here, by its digest, even if the file has changed since.
export function NewInstructions() {
  const { instructions } = cache.use("instructions");
  const [seen, setSeen] = useState<File | null>(null);
  const [moved, setMoved] = useState(false);
  const [, redraw] = useState(0);
  const waiting = instructions.filter((each) => (each.state === "new" || each.state === "changed") && !putOff(each));
  const file = seen ?? waiting[0];
  if (!file) return null;
  const done = (): void => {
    setSeen(null);
    setMoved(false);
    redraw((n) => n + 1);
  };
  const allow = async (): Promise<void> => {
    if (await trust(file.path, file.digest ?? "")) return done();
    const now = cache.instructions.find((each) => each.path === file.path && (each.state === "new" || each.state === "changed"));
    if (!now) return done();
    setMoved(now.digest !== file.digest);
    setSeen(now);
  };
  return (
    <section className="card approval" data-testid="instructions" aria-label={v.instructionsNew}>
      <header>
        <Icon name="shield" size={18} /><span className="grow" dir="auto">{v.instructionsWait(spelled(file.path), file.state === "new")}</span>
        {!seen && <button type="button" data-testid="instructions-look" onClick={() => setSeen(file)}>{v.lookAtIt}</button>}
        <button type="button" className="quiet" data-testid="instructions-later" onClick={() => {
          sessionStorage.setItem(`instructions:${file.path}`, file.digest ?? "");
          done();
        }}>{v.notNow}</button>
      </header>
      {seen && (
        <>
          {moved && <p className="warning" role="alert" data-testid="instructions-moved">{v.instructionsMoved}</p>}
          <pre className="instructions-text" tabIndex={0} dir="auto" data-testid="instructions-text"><Visible text={seen.text ?? ""} /></pre>
          <div className="answer-row"><button type="button" className="primary" data-testid="instructions-allow" onClick={() => void allow()}>{v.allowInstructions}</button></div>
        </>
      )}
    </section>
  );
}
