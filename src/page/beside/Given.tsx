import { useEffect, useState } from "react";
import { Code, languageOf } from "../parts/Code";
import { attempt } from "../store/state";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { chatPath, request, save } from "../wire/api";
import { Frame } from "./Frame";

const MOST = 5_000_000; // bytes that are looked at here
const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;
const TEXT = /^(text\/|application\/(json|xml|x-sh|javascript|x-yaml|toml))/;

// A file of the chat: sent with a message, about to be, or made by a tool.
export function Given({ chat, id, name, type }: { chat: string; id: string; name: string; type: string }) {
  const path = `${chatPath(chat)}/files/${encodeURIComponent(id)}`;
  const [address, setAddress] = useState("");
  const [text, setText] = useState<string | null>(null);
  const [preview, setPreview] = useState(false);
  const isPicture = PICTURE.test(type);
  const isPage = /^(text\/html|image\/svg\+xml)/.test(type);
  const isText = isPage || TEXT.test(type) || languageOf(name) !== "";
  useEffect(() => {
    let made = "", current = true;
    if (isPicture || isText) void attempt(async () => {
      const file = await (await request("GET", path)).blob();
      if (!current || file.size > MOST) return;
      if (isPicture) setAddress((made = URL.createObjectURL(file)));
      else setText(await file.text());
    });
    return () => {
      current = false;
      URL.revokeObjectURL(made);
    };
  }, [path, isPicture, isText]);
  return (
    <>
      <div className="row">
        <button type="button" className="tiny" onClick={() => void attempt(() => save(path, name))}>{v.saveFile}</button>
        {isPage && text !== null && <button type="button" className="tiny" data-testid="preview-given" aria-pressed={preview} onClick={() => setPreview(!preview)}>{t.preview}</button>}
      </div>
      {address && <img className="given-picture" data-testid="given-picture" src={address} alt={name} />}
      {text !== null && (preview ? <Frame html={text} title={name} /> : <Code text={text} language={languageOf(name)} from={1} label={name} testid="given-text" />)}
      {!isPicture && !isText && <p className="hint">{v.noPreviewOf}</p>}
    </>
  );
}
