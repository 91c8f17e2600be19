import { useState } from "react";
import { t } from "../texts";

// Drawn inline, so nothing is fetched and icons take the colour of the text.
const SHAPES = {
  menu: "M4 7h16M4 12h16M4 17h16",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  search: "M11 4a7 7 0 1 0 0 14a7 7 0 0 0 0-14M16 16l4.5 4.5",
  chat: "M5 5h14a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1h-8l-4.5 3.5V17H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1",
  inbox: "M4 13l2.6-7.4a1 1 0 0 1 .9-.6h9a1 1 0 0 1 .9.6L20 13v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-5M4 13h5l1.2 2.5h3.6L15 13h5",
  board: "M5 5h4v14H5zM10 5h4v9h-4zM15 5h4v11h-4z",
  branch: "M7 4a2 2 0 1 0 0 4a2 2 0 0 0 0-4M7 16a2 2 0 1 0 0 4a2 2 0 0 0 0-4M17 6a2 2 0 1 0 0 4a2 2 0 0 0 0-4M7 8v8M17 10c0 3.5-4 3-7 4.5",
  trace: "M3.5 12H7l2.5-7 5 14 2.5-7h3.5",
  settings: "M4 7h9M17 7h3M15 5v4M4 12h3M11 12h9M9 10v4M4 17h7M15 17h5M13 15v4",
  help: "M12 3.5a8.5 8.5 0 1 0 0 17a8.5 8.5 0 0 0 0-17M9.7 9.5a2.4 2.4 0 1 1 3.3 2.2c-.7.4-1 .8-1 1.7M12 16.4v.2",
  more: "M5.5 11.5h1v1h-1zM11.5 11.5h1v1h-1zM17.5 11.5h1v1h-1z",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  pencil: "M4.5 19.5l.8-3.8L16 5l3 3L8.3 18.700zM14 7l3 3",
  refresh: "M19 12a7 7 0 1 1-2.2-5.100M17.5 3.500v4h-4",
  play: "M8 5.500v13l10.5-6.500z",
  pause: "M9 6v12M15 6v12",
  back: "M14.5 6l-6 6 6 6",
  forward: "M9.5 6l6 6-6 6",
  down: "M6 9.500l6 6 6-6",
  undo: "M8 5L4 9l4 4M4 9h10a5 5 0 0 1 0 10h-3",
  redo: "M16 5l4 4-4 4M20 9H10a5 5 0 0 0 0 10h3",
  fork: "M6 4v5a3 3 0 0 0 3 3h6a3 3 0 0 0 3-3V4M12 12v8M4 6l2-2 2 2M16 6l2-2 2 2",
  trash: "M5 7h14M10 7V4.500h4V7M7 7l.8 12.500h8.400L17 7M10.3 10.500v5.500M13.7 10.500v5.5",
  download: "M12 4v10M8 10.500l4 4 4-4M5 19h14",
  upload: "M12 15V5M8 8.500l4-4 4 4M5 19h14",
  attach: "M19 11l-7.5 7.500a4.2 4.2 0 0 1-6-6L13 5a2.8 2.8 0 0 1 4 4l-7.5 7.500a1.4 1.4 0 0 1-2-2L14 8",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  command: "M4 5h16v14H4zM7.5 9.500l2.5 2.5-2.5 2.500M12.5 14.500h4",
  file: "M7 3.500h7l4 4v13H7zM14 3.500v4h4M10 12h5M10 15.500h5",
  diff: "M7 3.500h7l4 4v13H7zM14 3.500v4h4M12.5 10v5M10 12.500h5M10 17.500h5",
  folder: "M4 6h5.500l2 2.500H20V18.500H4z",
  web: "M12 3.500a8.5 8.5 0 1 0 0 17a8.5 8.5 0 0 0 0-17M3.5 12h17M12 3.500c-5 5-5 12 0 17M12 3.500c5 5 5 12 0 17",
  code: "M9 8l-4.5 4L9 16M15 8l4.5 4-4.5 4",
  agent: "M6 9h12v9H6zM12 9V5M12 4.500v.01M9.5 13v1.500M14.5 13v1.500M3.5 12.500v3M20.5 12.500v3",
  tasks: "M4.5 7l1.5 1.500L8.5 6M4.5 16l1.5 1.500L8.5 15M12 7.500h8M12 16.500h8",
  question: "M5 5h14v11h-8l-4 3.500V16H5zM10.2 9.300a1.8 1.8 0 1 1 2.6 1.600c-.6.3-.8.6-.8 1.200M12 13.700v.1",
  tool: "M14.5 6.500a4 4 0 0 1 5-1l-2.7 2.7.2 1.8 1.8.2 2-2a4 4 0 0 1-5.3 4.800L9 19.500a2 2 0 0 1-3-3l6.8-6.300a4 4 0 0 1 1.7-3.7",
  plug: "M9 4v5M15 4v5M6.5 9h11v2.500a5.5 5.5 0 0 1-11 0zM12 17v3.5",
  thinking: "M12 4c.6 4.2 3.8 7.4 8 8c-4.2.6-7.4 3.8-8 8c-.6-4.2-3.8-7.4-8-8c4.2-.6 7.4-3.8 8-8",
  eye: "M3 12c4-7.5 14-7.5 18 0c-4 7.5-14 7.5-18 0M12 9.500a2.5 2.5 0 1 0 0 5a2.5 2.5 0 0 0 0-5",
  clock: "M12 3.500a8.5 8.5 0 1 0 0 17a8.5 8.5 0 0 0 0-17M12 7.500V12l3 2",
  alert: "M12 4l9 15.500H3zM12 10v4.500M12 17v.2",
  shield: "M12 3.500l7 2.500v6c0 4.5-3 7.2-7 8.500c-4-1.3-7-4-7-8.500V6z",
  compress: "M5 4h14M5 20h14M12 6.500v4M10 8.700l2 2 2-2M12 17.500v-4M10 15.300l2-2 2 2",
  loop: "M7 8h9a3.5 3.5 0 0 1 0 8H8M10 5L7 8l3 3M10.5 13.500L8 16l2.5 2.5",
  expand: "M7 9.500L12 4.500l5 5M7 14.500l5 5 5-5",
  collapse: "M7 4.500l5 5 5-5M7 19.500l5-5 5 5",
  link: "M10 14a4 4 0 0 0 5.6 0l3-3a4 4 0 0 0-5.6-5.600L11.5 7M14 10a4 4 0 0 0-5.6 0l-3 3a4 4 0 0 0 5.6 5.600L12.5 17",
  verify: "M12 3.500l7 2.500v6c0 4.5-3 7.2-7 8.500c-4-1.3-7-4-7-8.500V6zM8.8 12l2.3 2.300L15.3 10",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  archive: "M4 5h16v4H4zM5.500 9v10h13V9M10 12.500h4",
  panel: "M4 5h16v14H4zM14.5 5v14",
  sidebar: "M4 5h16v14H4zM9.5 5v14",
  microphone: "M12 3.500a2.5 2.5 0 0 0-2.5 2.500v5a2.5 2.5 0 0 0 5 0V6A2.5 2.5 0 0 0 12 3.500M6.500 10.500v.5a5.5 5.5 0 0 0 11 0v-.5M12 16.500v4M9 20.500h6",
  speaker: "M4 9.500v5h3.500L12 18.500v-13L7.500 9.500zM15.500 9a4 4 0 0 1 0 6M18 6.500a7.500 7.500 0 0 1 0 11",
} as const;
export type IconName = keyof typeof SHAPES;

// Hidden from screen readers, because the text or label beside it tells its meaning.
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" aria-hidden="true" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.7" strokeLinecap="round" strokeLinejoin="round">
      <path d={SHAPES[name]} />
    </svg>
  );
}

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
