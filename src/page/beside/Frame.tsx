import { useEffect, useRef } from "react";

// HTML or SVG of strangers, in a frame that may do nothing: GET /preview says how.
export function Frame({ html, title }: { html: string; title: string }) {
  const place = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    const onMessage = (e: MessageEvent): void => {
      const frame = place.current?.contentWindow;
      if (frame && e.source === frame && e.data === "ready") frame.postMessage(html, "*"); // the frame's origin is opaque
    };
    addEventListener("message", onMessage);
    return () => removeEventListener("message", onMessage);
  }, [html]);
  return <iframe key={html} ref={place} className="preview" data-testid="preview-frame" sandbox="allow-scripts" referrerPolicy="no-referrer" src="/preview" title={title} />;
}
