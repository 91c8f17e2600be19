// What may be meant by the word before the caret: "/" an action, "@" a file of the chat.
import { useEffect, useState } from "react";
import type { IconName } from "../parts/Icon";
import { actions } from "../keys/actions";
import { store } from "../store/store";
import type { ChatFiles, FileInfo } from "../wire";
import { chatPath, get } from "../wire/api";
import { mention } from "./uploads";

export interface Suggestion {
  key: string;
  icon: IconName;
  name: string;
  more: string;
  take: () => string; // the text that stands there afterwards
}

const MOST = 8;

export function useCompletion(text: string, caret: number): Suggestion[] {
  const chat = store.open?.id ?? "";
  const before = text.slice(0, caret);
  const slash = /^\/([\w-]*)$/.exec(before);
  const at = /(?:^|\s)@([^\s@]*)$/.exec(before);
  const wantsFiles = at !== null && chat !== "";
  const [files, setFiles] = useState<FileInfo[]>([]);
  useEffect(() => {
    if (wantsFiles) void get<ChatFiles>(`${chatPath(chat)}/files`).then((found) => setFiles(found.files), () => setFiles([]));
  }, [wantsFiles, chat]);
  if (slash && text === before) {
    const word = slash[1]!.toLowerCase();
    return actions().filter((each) => each.id.startsWith(word) || each.name.toLowerCase().includes(word)).slice(0, MOST).map((each) => ({
      key: each.id, icon: each.icon, name: `/${each.id}`, more: each.name,
      take: () => {
        each.run();
        return "";
      },
    }));
  }
  if (!wantsFiles) return [];
  const word = at[1]!.toLowerCase();
  return files.filter((each) => each.filename.toLowerCase().includes(word)).slice(0, MOST).map((each) => ({
    key: each.id, icon: "file", name: each.filename, more: "",
    take: () => {
      mention(chat, each);
      return `${before.slice(0, before.length - word.length)}${each.filename} ${text.slice(caret)}`;
    },
  }));
}
