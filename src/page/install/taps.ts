// A tap on what the service worker has shown: opens the call or the question that it told of, if that still waits, else its chat.
import { goToWaiting } from "../keys/actions";
import { cache } from "../store/cache";
import { readChats } from "../store/feed";
import { navigation, openChat } from "../store/navigation";
import { attempt, tell } from "../store/state";
import type { PendingApproval, PendingInput } from "../store/turn";
import { v } from "../texts_of_views";
import { get } from "../wire/api";
import { opaque } from "./devices";

export async function tapped({ id = "", chat = "" }: { id?: string; chat?: string }): Promise<void> {
  await attempt(async () => {
    const { approvals, inputs } = await get<{ approvals: PendingApproval[]; inputs: PendingInput[] }>("/approvals");
    if (location.search) history.replaceState(null, "", location.pathname + location.hash); // it came by the address
    const approval = approvals.find((each) => each.approval_id === id), input = inputs.find((each) => each.request_id === id);
    // The page may not have read yet what waits.
    if (approval) cache.set({ approvals: new Map(cache.approvals).set(id, approval) });
    if (input) cache.set({ inputs: new Map(cache.inputs).set(id, input) });
    if (approval || input) return goToWaiting(id);
    if (id) tell(v.waitsNoMore);
    for (const each of (await readChats()).keys()) if ((await opaque(each)) === chat) return openChat(each);
    navigation.set({ view: "inbox" });
  });
}
