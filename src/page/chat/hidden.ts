// Characters that cannot be seen, or that turn the order of others around, spelled out: what is approved is what is read.
// eslint-disable-next-line no-control-regex
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

export const hasHidden = (text: string): boolean => text.search(HIDDEN) >= 0;
export const spelled = (text: string): string => text.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
