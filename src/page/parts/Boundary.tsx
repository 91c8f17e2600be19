import { Component, ReactNode } from "react";
import { t } from "../texts";

// Reports a fault of the page itself instead of an empty window.
export class Boundary extends Component<{ children: ReactNode }, { failure: string | null }> {
  override state: { failure: string | null } = { failure: null };
  static getDerivedStateFromError(error: unknown): { failure: string } {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
  override render(): ReactNode {
    if (this.state.failure === null) return this.props.children;
    return (
      <main className="login" role="alert" data-testid="broken">
        <h1>{t.broken}</h1><p>{t.brokenHint}</p><code>{this.state.failure}</code>
        <button type="button" className="primary" onClick={() => location.reload()}>{t.reload}</button>
      </main>
    );
  }
}
