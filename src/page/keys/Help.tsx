import { Icon } from "../parts/Icon";
import { t } from "../texts";
import { v } from "../texts_of_views";
import { Dialog } from "./Palette";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={t.help} onClose={onClose} testid="help">
      <div className="row">
        <h2 className="grow">{t.help}</h2>
        <button type="button" className="quiet square" autoFocus aria-label={t.close} onClick={onClose}><Icon name="close" /></button>
      </div>
      <div className="help-keys" tabIndex={0} role="region" aria-label={t.help}>
        {v.helpGroups.map(([group, keys]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>{keys.map(([key, what]) => <div key={key + what}><dt>{key.split(" / ").map((one, i) => <span key={one}>{i > 0 && " / "}<kbd>{one}</kbd></span>)}</dt><dd>{what}</dd></div>)}</dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
