// Decides which rows of a long list are in the document: those near its window, and those with the focus or a selection.
// If rows above the reader are measured, loaded or grow, the row that they look at stays in place.

export interface Row {
  key: string;
  kind: string; // unmeasured rows are taken to be as high as measured ones of their kind, in proportion to `guess`
  guess: number; // pixels
  floats?: boolean; // stays above rows that are loaded before the others, so it cannot be the reader's place
}
export interface Place {
  stuck: boolean; // follows the end
  key: string;
  top: number; // of the row, below the upper edge of the scrolling box
}

const BEYOND = 700; // pixels above and below the window that are drawn as well
const SOON = 250; // draws again when less than this is left of them
const AT_END = 24;
const SAMPLES = 40; // measured rows per kind
const QUIET = 150; // milliseconds without a move after which scrolling has ended
const MEANT = 1000; // milliseconds after a touch of wheel, bar, screen or keys in which a move counts as the reader's
const MOST_PASSES = 6; // of drawing and measuring per change
export const MOST_PRINTED = 3000; // rows; of a longer list only those near the window are printed

// The height of what sticks above a row: the message of its turn.
export function roomOf(row: Element): number {
  const head = row.closest(".turn")?.querySelector<HTMLElement>(".head-box");
  return head && getComputedStyle(head).position === "sticky" ? head.offsetHeight : 0;
}

export class ListWindow {
  stuck: boolean;
  private rows: readonly Row[] = [];
  private leads: Int32Array | null = null; // for each row, the index of a row that is drawn with it
  private waits: readonly string[] = []; // keys of rows that wait for a person: they are drawn wherever they are
  private passed = false; // the reader has moved on from the first of them
  private offsets = new Float64Array(1);
  private anchor: { key: string; top: number } | null = null;
  private anchorIndex = 0;
  private first = 0;
  private last = -1;
  private scroller: HTMLElement | null = null;
  private root: HTMLElement | null = null;
  private redraw: () => void = () => undefined;
  private watch: ResizeObserver | null = null;
  private readonly watched = new Set<HTMLElement>();
  private readonly samples = new Map<string, { measured: number; guessed: number; count: number }>();
  private pressed: { key: string; top: number; at: number } | null = null;
  private origin = 0; // of the list in the scrolling box
  private lastTop = 0;
  private touched = -MEANT; // time of the last touch; infinite while a button is held
  private left = -MEANT; // time when the reader left the end
  private away: boolean; // from the end, when that was looked at last
  private passes = 0;
  private aim: string | null = null;
  private printing = false; // then the list has the printer's layout, and nothing of it is measured
  // While the reader scrolls, moves the list and not the scroll position, because browsers stop their own movement if that is set.
  private shift = 0;
  private quiet = 0; // the timer; 0: no scrolling

  // `heights` outlives this list, so that rows have their old heights when the list is shown again.
  constructor(private readonly heights: Map<string, number>, private readonly sticks: boolean, place?: Place) {
    this.stuck = sticks && (place?.stuck ?? true);
    this.away = !this.stuck;
    if (place && !place.stuck) this.anchor = { key: place.key, top: place.top };
  }

  // --- the drawn rows
  setRows(rows: readonly Row[], leads: Int32Array | null, waits: readonly string[] = []): void {
    this.rows = rows;
    this.leads = leads;
    this.waits = waits;
    if (waits.length === 0) this.passed = false;
    this.place();
  }

  private place(): void {
    const { rows, heights } = this;
    if (this.offsets.length !== rows.length + 1) this.offsets = new Float64Array(rows.length + 1);
    let at = 0;
    for (let i = 0; i < rows.length; i++) {
      this.offsets[i] = at;
      const row = rows[i]!;
      at += heights.get(row.key) ?? this.thought(row);
    }
    this.offsets[rows.length] = at;
  }
  private thought(row: Row): number {
    const seen = this.samples.get(row.kind);
    return Math.max(1, seen && seen.count > 2 ? (row.guess * seen.measured) / seen.guessed : row.guess);
  }

  get total(): number {
    return this.offsets[this.rows.length]!;
  }
  // The height of the rows [from, to).
  height(from: number, to: number): number {
    return this.offsets[Math.max(from, to)]! - this.offsets[from]!;
  }
  private indexAt(y: number): number {
    let low = 0, high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsets[middle]! <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  private indexOf(key: string): number {
    if (this.rows[this.anchorIndex]?.key === key) return this.anchorIndex;
    const found = this.rows.findIndex((row) => row.key === key);
    if (found >= 0) this.anchorIndex = found;
    return found;
  }

  private get viewport(): number {
    return this.scroller?.clientHeight || innerHeight;
  }
  // The row that following the end does not pass, so that what waits is read from its beginning; -1: none.
  private get stop(): number {
    return this.passed || this.waits.length === 0 ? -1 : this.rows.findIndex((row) => row.key === this.waits[0]);
  }
  // The window's upper edge in the list.
  private get top(): number {
    if (this.stuck) {
      const stop = this.stop, lead = this.leads?.[stop] ?? -1;
      const most = stop < 0 ? Infinity : this.offsets[stop]! - (lead < 0 ? 0 : this.height(lead, lead + 1));
      return Math.max(0, Math.min(most, this.total - this.viewport));
    }
    if (this.anchor) {
      const index = this.indexOf(this.anchor.key);
      if (index >= 0) return this.offsets[index]! - this.anchor.top;
    }
    return this.lastTop - this.origin;
  }

  // The indexes of the drawn rows, in order.
  shown(): number[] {
    if (this.rows.length === 0) return [];
    const top = this.top;
    this.first = this.indexAt(top - BEYOND);
    this.last = this.indexAt(top + this.viewport + BEYOND);
    if (this.printing && this.rows.length <= MOST_PRINTED) return this.rows.map((_, i) => i);
    const wanted = new Set<number>();
    for (let i = this.first; i <= this.last; i++) wanted.add(i);
    for (const key of this.pins()) {
      const index = this.rows.findIndex((row) => row.key === key);
      if (index >= 0) wanted.add(index);
    }
    if (this.leads) for (const i of [...wanted]) if (this.leads[i]! >= 0) wanted.add(this.leads[i]!);
    return [...wanted].sort((a, b) => a - b);
  }
  private pins(): Set<string> {
    const pins = new Set<string>(this.waits);
    const add = (node: Node | null | undefined): void => {
      const row = this.rowAround(node instanceof Element ? node : node?.parentElement);
      if (row) pins.add(row.dataset.row!);
    };
    add(document.activeElement);
    const chosen = getSelection();
    if (chosen && !chosen.isCollapsed) add(chosen.anchorNode), add(chosen.focusNode);
    if (this.anchor && !this.stuck) pins.add(this.anchor.key);
    return pins;
  }
  // The indexes of the first and last visible row.
  seen(): [number, number] {
    const top = this.top;
    return [this.indexAt(top), this.indexAt(top + this.viewport)];
  }

  // --- the document
  attach(scroller: HTMLElement, root: HTMLElement, redraw: () => void): () => void {
    this.scroller = scroller;
    this.root = root;
    this.redraw = redraw;
    this.watch = new ResizeObserver((entries) => this.onResize(entries));
    this.watch.observe(scroller);
    const onScroll = (): void => this.onScroll();
    const onScrollEnd = (): void => this.unshift();
    const onTouch = (e: Event): void => void (this.touched = e.type === "pointerdown" ? Infinity : performance.now());
    const onKey = (e: KeyboardEvent): void => {
      onTouch(e);
      if (e.target !== scroller || e.ctrlKey || e.altKey || e.metaKey || e.shiftKey) return;
      if (e.key === "End" && this.sticks) this.toEnd();
      else if (e.key === "Home" && this.rows.length > 0) this.reveal(this.rows[0]!.key, 0);
      else return;
      e.preventDefault();
    };
    const onWheel = (e: WheelEvent): void => {
      if (e.deltaY < 0 && scroller.scrollHeight > scroller.clientHeight) this.letGo();
    };
    const onPress = (e: Event): void => {
      const row = this.rowAround(e.target as Element);
      if (row) this.press(row.dataset.row!, this.topOf(row));
    };
    const stop = new AbortController();
    const { signal } = stop;
    scroller.addEventListener("scroll", onScroll, { passive: true, signal });
    scroller.addEventListener("scrollend", onScrollEnd, { signal });
    scroller.addEventListener("keydown", onKey, { signal });
    for (const name of ["wheel", "touchmove", "pointerdown"]) scroller.addEventListener(name, onTouch, { passive: true, signal });
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, onTouch, { signal });
    scroller.addEventListener("wheel", onWheel, { passive: true, signal });
    root.addEventListener("click", onPress, { capture: true, signal });
    // Such as a key that opens or hides all of a kind.
    const onCommand = (e: KeyboardEvent): void => {
      if (!e.ctrlKey || !e.altKey) return;
      this.takeAnchor();
      if (this.anchor) this.press(this.anchor.key, this.anchor.top);
    };
    addEventListener("keydown", onCommand, { capture: true, signal });
    const onPrint = (e: Event): void => {
      this.printing = e.type === "beforeprint";
      this.redraw();
    };
    if (this.sticks) for (const name of ["beforeprint", "afterprint"]) addEventListener(name, onPrint, { signal });
    return () => {
      stop.abort();
      clearTimeout(this.quiet);
      this.watch?.disconnect();
      this.watched.clear();
      this.scroller = this.root = null;
    };
  }
  // What comes of a press is drawn with the next frames, however long these take.
  private press(key: string, top: number): void {
    const pressed = (this.pressed = { key, top, at: Infinity });
    requestAnimationFrame(() => requestAnimationFrame(() => void (pressed.at = performance.now())));
  }
  whereItIs(): Place {
    return { stuck: this.stuck, key: this.anchor?.key ?? "", top: this.anchor?.top ?? 0 };
  }

  private elements(): HTMLElement[] {
    const rows = this.root ? Array.from(this.root.querySelectorAll<HTMLElement>("[data-row]")) : [];
    return rows.filter((row) => row.closest("[data-list]") === this.root); // skips rows of nested lists
  }
  private rowAround(element: Element | null | undefined): HTMLElement | null {
    let row = element?.closest<HTMLElement>("[data-row]") ?? null;
    while (row && row.closest("[data-list]") !== this.root) row = row.parentElement!.closest<HTMLElement>("[data-row]");
    return row;
  }
  private element(key: string): HTMLElement | undefined {
    return this.elements().find((each) => each.dataset.row === key);
  }
  // A sticky head counts as being where its group begins.
  private topOf(row: HTMLElement): number {
    const box = row.dataset.lead !== undefined ? row.parentElement! : row;
    return box.getBoundingClientRect().top - this.scroller!.getBoundingClientRect().top - this.scroller!.clientTop;
  }

  // Called after each drawing, and when a row has changed by itself. Reads all heights at once, then holds the place.
  settle(): void {
    const { scroller, root } = this;
    if (!scroller || !root || scroller.clientHeight === 0 || this.printing) return; // hidden elements have no heights
    let changed = false;
    const present = new Set<HTMLElement>();
    for (const row of this.elements()) {
      present.add(row);
      if (!this.watched.has(row)) this.watch?.observe(row), this.watched.add(row);
      if (this.note(row.dataset.row!, row.dataset.kind!, Number(row.dataset.guess), row.getBoundingClientRect().height)) changed = true;
    }
    for (const row of this.watched) if (!present.has(row)) this.watch?.unobserve(row), this.watched.delete(row);
    if (changed) this.place();
    this.origin = root.getBoundingClientRect().top - scroller.getBoundingClientRect().top - scroller.clientTop + scroller.scrollTop;
    this.hold();
    if (!this.covers(SOON) && this.passes < MOST_PASSES) {
      if (this.passes++ === 0) requestAnimationFrame(() => (this.passes = 0));
      this.redraw();
    }
  }
  private note(key: string, kind: string, guess: number, height: number): boolean {
    const before = this.heights.get(key);
    if (before !== undefined && Math.abs(before - height) < 0.1) return false;
    this.heights.set(key, height);
    if (before === undefined) {
      const seen = this.samples.get(kind) ?? { measured: 0, guessed: 0, count: 0 };
      if (seen.count < SAMPLES) seen.measured += height, seen.guessed += guess, seen.count++;
      this.samples.set(kind, seen);
    }
    return true;
  }

  private hold(): void {
    const scroller = this.scroller!;
    const pressed = this.pressed && performance.now() - this.pressed.at < 400 ? this.pressed : null;
    if (pressed) {
      const row = this.element(pressed.key);
      if (row) this.moveBy(this.topOf(row) - pressed.top);
      // If the reader opens something at the end, it stays in view instead of the end.
      if (this.stuck) this.stick(this.isAtEnd());
      this.takeAnchor();
    } else if (this.stuck && this.rows.length > 0) {
      if (this.shift !== 0) this.shift = 0, (this.root!.style.marginTop = "");
      let end = scroller.scrollHeight - scroller.clientHeight;
      const stop = this.rows[this.stop], row = stop && this.element(stop.key);
      if (row) end = Math.max(0, Math.min(end, scroller.scrollTop + this.topOf(row) - roomOf(row)));
      if (Math.abs(scroller.scrollTop - end) >= 1) scroller.scrollTop = end;
      this.lastTop = scroller.scrollTop;
    } else if (this.anchor) {
      const row = this.element(this.anchor.key);
      if (row) this.moveBy(this.topOf(row) - this.anchor.top);
      else if (this.indexOf(this.anchor.key) < 0) this.takeAnchor();
      if (row && this.aim === row.dataset.row) this.aim = null, this.takeAnchor();
    } else {
      this.takeAnchor();
    }
    // What is shown has become shorter: whoever is at its end now is there. Who was there all along may be about to leave it.
    const wasAway = this.away || performance.now() - this.left > MEANT;
    this.away = this.distance() >= 1;
    if (this.sticks && this.aim === null && wasAway && !this.away) this.stick(true);
  }
  // The page shows a way to the end to those who are not there.
  private stick(stuck: boolean): void {
    if (this.stuck !== stuck) requestAnimationFrame(() => this.redraw());
    this.stuck = stuck;
  }
  private moveBy(by: number): void {
    if (Math.abs(by) < 1) return;
    if (this.quiet !== 0) {
      this.shift -= by;
      this.root!.style.marginTop = `${this.shift}px`;
      this.origin -= by;
    } else {
      this.scroller!.scrollTop += by;
      this.lastTop = this.scroller!.scrollTop;
    }
  }
  private unshift(): void {
    clearTimeout(this.quiet);
    this.quiet = 0;
    if (this.shift === 0 || !this.root) return;
    const by = this.shift;
    this.shift = 0;
    this.root.style.marginTop = "";
    this.scroller!.scrollTop -= by;
    this.settle();
    this.lastTop = this.scroller!.scrollTop;
  }
  private distance(): number {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller!;
    return scrollHeight - scrollTop - clientHeight;
  }
  private isAtEnd(): boolean {
    return this.sticks && this.distance() <= AT_END;
  }

  // Sets the anchor to the row at the upper edge of the readable part.
  private takeAnchor(): void {
    const scroller = this.scroller!;
    let y = scroller.scrollTop - this.origin;
    if (y < 0 || this.rows.length === 0) {
      this.anchor = null; // the list begins below the edge
      return;
    }
    let index = this.indexAt(y);
    const lead = this.leads?.[index] ?? -1;
    if (lead >= 0) {
      y += this.height(lead, lead + 1);
      index = Math.max(index, this.indexAt(y));
    }
    while (this.rows[index]!.floats && index + 1 < this.rows.length) index++;
    const row = this.element(this.rows[index]!.key);
    this.anchorIndex = index;
    this.anchor = { key: this.rows[index]!.key, top: row ? this.topOf(row) : this.offsets[index]! - (scroller.scrollTop - this.origin) };
  }

  private covers(margin: number): boolean {
    if (this.rows.length === 0) return true;
    const top = this.top;
    return this.indexAt(Math.max(0, top - margin)) >= this.first && this.indexAt(top + this.viewport + margin) <= this.last;
  }

  private onScroll(): void {
    const { scroller } = this;
    if (!scroller || this.printing) return;
    const top = scroller.scrollTop;
    if (top === this.lastTop) return; // our own doing
    const up = top < this.lastTop;
    // If content below grows for a moment, the browser moves a box at its end. The reader has not left the end.
    if (up && this.stuck && performance.now() - this.touched > MEANT && this.distance() < this.viewport / 2) return this.hold();
    this.lastTop = top;
    this.pressed = null;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.unshift(), QUIET);
    const before = this.stuck;
    const stopped = before && this.stop >= 0;
    this.passed = true;
    // A list that becomes shorter moves upwards too, and to its end.
    const wasAway = this.away;
    this.away = this.distance() >= 1;
    if (up && (this.away || !wasAway)) (this.stuck = false), (this.left = performance.now());
    else if (this.isAtEnd()) this.stuck = true;
    else if (stopped) (this.stuck = false), (this.left = performance.now());
    if (!this.stuck) this.takeAnchor();
    if (!this.covers(SOON) || before !== this.stuck) this.redraw();
  }
  private letGo(): void {
    this.left = performance.now();
    if (!this.stuck) return;
    this.stuck = false;
    this.takeAnchor();
    this.redraw();
  }
  private onResize(entries: ResizeObserverEntry[]): void {
    const { scroller } = this;
    if (!scroller) return;
    let changed = false;
    for (const { target, borderBoxSize } of entries) {
      const row = target as HTMLElement;
      const height = this.heights.get(row.dataset.row ?? "");
      if (row === scroller || (row.isConnected && (height === undefined || Math.abs(height - borderBoxSize[0]!.blockSize) >= 0.1))) changed = true;
    }
    if (changed) this.settle();
  }

  // --- moving to a place
  toEnd(): void {
    this.pressed = null;
    this.passed = true;
    this.unshift();
    this.stuck = true;
    this.redraw();
  }
  // Scrolls to a row, into the middle, unless it is visible.
  show(key: string): void {
    const index = this.rows.findIndex((row) => row.key === key);
    const top = this.offsets[index];
    if (index < 0 || top === undefined || !this.scroller || this.scroller.clientHeight === 0) return;
    const seen = this.scroller.scrollTop - this.origin;
    if (top < seen || this.offsets[index + 1]! > seen + this.viewport) this.reveal(key, this.viewport / 2);
  }
  // Scrolls to a row, `below` pixels from the upper edge.
  reveal(key: string, below: number): void {
    this.pressed = null;
    this.passed = true;
    this.unshift();
    this.stuck = false;
    this.anchor = { key, top: below };
    this.aim = key;
    this.redraw();
  }
}
