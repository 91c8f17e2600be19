// A message that could not be sent, stored so that it survives a reload.
export interface Unsent {
  id: string;
  text: string;
  attachments: string[];
}

const name = (chat: string): string => `unsent:${chat}`;

export function unsentOf(chat: string): Unsent[] {
  try {
    return JSON.parse(localStorage.getItem(name(chat)) ?? "[]") as Unsent[];
  } catch {
    return [];
  }
}
export function keepUnsent(chat: string, unsent: Unsent[]): void {
  if (unsent.length > 0) localStorage.setItem(name(chat), JSON.stringify(unsent));
  else localStorage.removeItem(name(chat));
}
