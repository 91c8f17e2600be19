import { useEffect, useState } from "react";
import { beTold, beToldNoMore, canBeTold, thisDevice } from "../install/devices";
import { attempt, tell } from "../store/state";
import { v } from "../texts_of_views";
import type { PushDevices } from "../wire";
import { call, get } from "../wire/api";

// Whether this browser is told when something waits, and the other devices that are. Nothing is shown if the server tells none.
export function Devices() {
  const [devices, setDevices] = useState<PushDevices["devices"] | null>(null);
  const [own, setOwn] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const read = async (): Promise<void> => {
    const listed = await get<PushDevices>("/push/devices").catch(() => null);
    setOwn(await thisDevice());
    setDevices(listed?.devices ?? null);
  };
  useEffect(() => void read(), []);
  const change = async (wanted: boolean): Promise<void> => {
    setBusy(true);
    await attempt(async () => {
      if (!wanted) await beToldNoMore();
      else if (!(await beTold())) tell(v.notAllowed);
    });
    await read();
    setBusy(false);
  };
  const remove = (id: string): Promise<boolean> => attempt(async () => {
    await call("DELETE", `/push/devices/${id}`);
    await read();
  });
  if (!devices) return null;
  const can = canBeTold();
  const others = devices.filter((each) => each.id !== own);
  return (
    <>
      <label className="setting">
        <input type="checkbox" data-testid="tell-device" disabled={busy || !can} checked={devices.some((each) => each.id === own)} onChange={(e) => void change(e.target.checked)} />
        <span>{v.tellDevice}</span>
      </label>
      <p className="hint">{can ? v.tellDeviceHint : v.cannotBeTold}</p>
      {others.length > 0 && (
        <>
          <h3>{v.otherDevices}</h3>
          <ul className="tool-list" data-testid="devices">
            {others.map((each) => (
              <li key={each.id} data-testid="device">
                <span>{each.name || each.service}</span>
                <span className="hint">{each.service} · {new Date(each.created_at).toLocaleDateString()}</span>
                <button type="button" data-testid="remove-device" aria-label={v.removeDeviceOf(each.name || each.service)} onClick={() => void remove(each.id)}>{v.removeDevice}</button>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
