// Makes `place` equal to `wanted` by changing only the differences, so that selections, scrolling and screen readers are not disturbed.
export function morph(place: Node, wanted: Node): void {
  let at = place.firstChild;
  for (let next = wanted.firstChild; next;) {
    const node = next;
    next = next.nextSibling;
    if (at && at.nodeType === node.nodeType && at.nodeName === node.nodeName) {
      if (at instanceof Text && node instanceof Text) {
        if (node.data.startsWith(at.data)) node.data.length > at.data.length && at.appendData(node.data.slice(at.data.length));
        else at.data = node.data;
      } else if (at instanceof Element && node instanceof Element) {
        for (const { name } of [...at.attributes]) if (!node.hasAttribute(name)) at.removeAttribute(name);
        for (const { name, value } of [...node.attributes]) if (at.getAttribute(name) !== value) at.setAttribute(name, value);
        morph(at, node);
      }
      at = at.nextSibling;
    } else {
      place.insertBefore(node, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}
