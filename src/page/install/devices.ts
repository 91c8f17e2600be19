// This browser as a device that the server tells when something waits, though the page is closed (Web Push).
import type { PushDevice, PushDevices } from "../wire";
import { call, get } from "../wire/api";

// The server's name of an address, or of a chat in a message: the first digits of its digest.
export async function opaque(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest).slice(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Browsers can be told over https or at this machine, and those of iPhones once the page is installed.
export const canBeTold = (): boolean => isSecureContext && "serviceWorker" in navigator && "PushManager" in window && typeof Notification !== "undefined";

const subscription = async (): Promise<PushSubscription | null> => (await (await navigator.serviceWorker.getRegistration())?.pushManager.getSubscription()) ?? null;

// The id of this browser at the server; null: it has none.
export async function thisDevice(): Promise<string | null> {
  const present = canBeTold() ? await subscription() : null;
  return present && opaque(present.endpoint);
}

function nameOfBrowser(): string {
  const { userAgent } = navigator;
  const find = (names: string[]): string | undefined => names.find((name) => userAgent.includes(name));
  const browser = find(["Firefox", "Edg", "OPR", "Chrome", "Safari"])?.replace("Edg", "Edge").replace("OPR", "Opera");
  return [browser, find(["Android", "iPhone", "iPad", "Windows", "Mac", "Linux"])].filter(Boolean).join(", ");
}

const bytes = (base64url: string): Uint8Array => Uint8Array.from(atob(base64url.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

// False: the person or the browser does not allow it.
export async function beTold(): Promise<boolean> {
  if ((await Notification.requestPermission()) !== "granted") return false;
  const registration = await navigator.serviceWorker.register("/worker.js");
  await navigator.serviceWorker.ready;
  const { public_key: key } = await get<PushDevices>("/push/devices");
  const old = await registration.pushManager.getSubscription();
  await old?.unsubscribe(); // it may be for another key
  let made: PushSubscription;
  try {
    made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  } catch {
    return false;
  }
  const { endpoint, keys } = made.toJSON();
  try {
    await call<PushDevice>("POST", "/push/devices", { endpoint, p256dh: keys?.p256dh, auth: keys?.auth, name: nameOfBrowser() });
  } catch (error) {
    await made.unsubscribe();
    throw error;
  }
  if (old && old.endpoint !== endpoint) await call("DELETE", `/push/devices/${await opaque(old.endpoint)}`).catch(() => undefined);
  return true;
}

export async function beToldNoMore(): Promise<void> {
  const present = canBeTold() ? await subscription() : null;
  if (!present) return;
  await present.unsubscribe(); // whatever the server answers, nothing is shown any more
  await call("DELETE", `/push/devices/${await opaque(present.endpoint)}`).catch(() => undefined);
}
