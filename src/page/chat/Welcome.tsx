import { Icon, IconName } from "../parts/Icon";
import { cache } from "../store/cache";
import { navigation } from "../store/navigation";
import * as requests from "../store/requests";
import { useSelect } from "../store/state";
import { t } from "../texts";
import { FolderField } from "./Folder";

const ICONS: IconName[] = ["play", "diff", "command", "agent"];

// The start of a chat. There are examples for the built-in model, and others for any real one.
export function Welcome() {
  const { models } = cache.use("models");
  const folder = useSelect(requests.workspace);
  const model = models.models.find((each) => each.name === models.default);
  const offline = model?.provider === "offline";
  const examples = offline ? t.offlineExamples : t.examples;
  return (
    <div className="welcome" data-testid="welcome">
      <h1>{t.welcome}</h1>
      {folder && <FolderField folder={folder} />}
      <ul className="examples">
        {examples.map(([title, text], i) => (
          <li key={title}>
            <button type="button" data-testid="example" onClick={() => navigation.set({ wish: text })}>
              <Icon name={ICONS[i % ICONS.length]!} /><strong>{title}</strong><span className="faint">{text}</span>
            </button>
          </li>
        ))}
      </ul>
      {offline && <Connect title={t.offlineNow} />}
    </div>
  );
}

// How to connect the server to a real model.
export function Connect({ title }: { title: string }) {
  return (
    <section className="connect" data-testid="connect" aria-label={title}>
      <h2><Icon name="plug" size={17} />{title}</h2>
      <p>{t.connectHow}</p>
      <pre tabIndex={0} aria-label={title}>{t.connectCommands}</pre>
      <p className="hint">{t.connectLocal}</p>
    </section>
  );
}
