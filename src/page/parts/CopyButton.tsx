import { useState } from "react";
import { t } from "../texts";
import { Icon } from "./Icon";

export function CopyButton({ text, label = t.copy }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    });
  };
  return (
    <button type="button" className="quiet tiny" data-testid="copy" aria-label={done ? t.copied : label} title={done ? t.copied : label} onClick={copy}>
      <Icon name={done ? "check" : "copy"} size={15} />
    </button>
  );
}
