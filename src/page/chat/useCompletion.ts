// Suggestions for the word before the caret: after "/" actions, after "@" files of the workspace or of the chat.
import { useEffect, useState } from "react";
import type { IconName } from "../parts/Icon";
import { actions } from "../keys/actions";
import { cache, openEntry, useOpen } from "../store/cache";
import { prompts } from "../store/prompts";
import { useSelect } from "../store/state";
import { t } from "../texts";
import type { FileInfo, WorkspaceFiles } from "../wire";
import { request } from "../wire/api";
import { spelled } from "./hidden";
import { attachPath, filesOf, mention, mentionBefore, mentionOf } from "./uploads";

interface Suggestion {
  key: string;
  icon: IconName;
  name: string;
  more: string;
  take: () => string; // returns the completed text
  attach?: () => Promise<void>; // attaches the file; may make the chat
}

const MOST = 8;
const OF_CHAT = 3; // files of the chat that always have room
const PAUSE = 120; // ms to wait for more typing

// Files of the workspace whose path contains the word, once the server has found them.
function useWorkspaceFiles(word: string | null): string[] {
  const [found, setFound] = useState<string[]>([]);
  const wanted = useSelect(() => Boolean(cache.tools?.workspace)) ? word : null;
  useEffect(() => {
    if (wanted === null) return setFound([]);
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const chat = openEntry() ? `&chat_id=${openEntry()?.id}` : "";
        const answer = await request("GET", `/workspace/files?limit=${MOST}&q=${encodeURIComponent(wanted)}${chat}`, undefined, stop.signal);
        setFound(((await answer.json()) as WorkspaceFiles).files.map((each) => each.path));
      } catch {
        if (!stop.signal.aborted) setFound([]);
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [wanted]);
  // Until then, the files of the previous word that still fit.
  return wanted === null ? [] : found.filter((each) => each.toLowerCase().includes(wanted.toLowerCase().replace(/^(\.\/)+/, "")));
}

export function useCompletion(text: string, caret: number): Suggestion[] {
  const chat = useOpen()?.id ?? "";
  const { instructions } = cache.use("instructions");
  const before = text.slice(0, caret);
  const slash = /^\/([\w-]*)$/.exec(before);
  const at = mentionBefore(before);
  const wantsFiles = at !== null && chat !== "";
  const [files, setFiles] = useState<FileInfo[]>([]);
  const paths = useWorkspaceFiles(at && at.word);
  useEffect(() => {
    if (wantsFiles) void filesOf(chat).then(setFiles, () => undefined);
  }, [wantsFiles, chat]);
  if (slash && text === before) {
    const word = slash[1]!.toLowerCase();
    const all = actions();
    const ofFolder = instructions.filter((each) => each.kind !== "instructions" && each.kind !== "agent" && each.state === "used" && each.name?.startsWith(word) && !all.some((action) => action.id === each.name));
    const own = all.filter((each) => each.id.startsWith(word) || each.name.toLowerCase().includes(word)).map((each): Suggestion => ({
      key: each.id, icon: each.icon, name: `/${each.id}`, more: each.name,
      take: () => {
        each.run();
        return "";
      },
    }));
    const commands = ofFolder.map((each): Suggestion => ({ key: each.path, icon: "file", name: `/${each.name}`, more: spelled(each.description ?? ""), take: () => `/${each.name} ` }));
    const saved = prompts.all.filter((each) => each.name.toLowerCase().includes(word)).map((each): Suggestion => ({ key: `prompt-${each.name}`, icon: "pencil", name: each.name, more: each.text.slice(0, 60), take: () => each.text }));
    return [...saved.slice(0, MOST / 2), ...commands.slice(0, MOST / 2), ...own].slice(0, MOST);
  }
  if (!at) return [];
  const named = (path: string): string => `${before.slice(0, at.from)}${mentionOf(path)} ${text.slice(caret)}`;
  const ofChat = wantsFiles ? files.filter((each) => each.filename.toLowerCase().includes(at.word.toLowerCase())) : [];
  const ofWorkspace = paths.slice(0, MOST - Math.min(OF_CHAT, ofChat.length));
  return [
    ...ofWorkspace.map((path): Suggestion => ({ key: `/${path}`, icon: "file", name: path, more: "", take: () => named(path), attach: () => attachPath(path) })),
    ...ofChat.slice(0, MOST - ofWorkspace.length).map((each): Suggestion => ({
      key: each.id, icon: "file", name: each.filename, more: ofWorkspace.length > 0 ? t.ofThisChat : "",
      take: () => {
        mention(chat, each);
        return named(each.filename);
      },
    })),
  ];
}
