// What happens, as it happens: one stream of events for the page, which reconnects by itself and says when it is cut off.
import { apiUrl, ask, call } from './api.js';
import { effect, signal, useEffect, useRef } from './html.js';
import { place } from './place.js';

/** `connecting`, `live`, or `lost`. */
export const connection = signal('connecting');
/** Counts how often the stream was opened: what happened before that, and was missed, is loaded anew. */
const opened = signal(0);

const RETRY_MS = 5_000;
const listeners = new Set();
let source = null;
let types = null;
/** Of the latest attempt: an older one that comes late changes nothing. */
let attempt = 0;

async function open() {
  const mine = ++attempt;
  const isWanted = () => mine === attempt;
  source?.close();
  try {
    types ??= (await call('GET', '/event_types')).data.map(({ name }) => name);
  } catch (error) {
    // Not a member, or no longer.
    if (error.status === 404) return;
    return retry(isWanted);
  }
  if (!isWanted()) return;
  const mySource = new EventSource(apiUrl('/events/stream'));
  source = mySource;
  mySource.onopen = () => {
    if (!isWanted()) return;
    opened.value += 1;
    connection.value = 'live';
  };
  mySource.onerror = () => {
    if (!isWanted()) return;
    connection.value = 'lost';
    if (mySource.readyState === EventSource.CLOSED) retry(isWanted);
  };
  for (const type of types) {
    mySource.addEventListener(type, ({ data }) => {
      const event = JSON.parse(data);
      for (const listener of listeners) listener(event);
    });
  }
}

function retry(isWanted) {
  if (!isWanted()) return;
  connection.value = 'lost';
  setTimeout(async () => {
    // Tells a session that is over, which leads to the sign-in, from a server that is not there.
    await ask('GET', '/me').catch(() => {});
    if (isWanted()) open();
  }, RETRY_MS);
}

/** Calls `open` now, and again whenever the page is looked at; `close` while nobody does. A browser has few connections for all pages. */
export function whileSeen(open, close) {
  const look = () => (document.hidden ? close() : open());
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    document.removeEventListener('visibilitychange', look);
    close();
  };
}

/** Keeps the stream of the place's environment open. */
export function follow() {
  let current = null;
  effect(() => {
    const { slug, env } = place.value;
    if (!slug || `${slug}/${env}` === current) return;
    const isFirst = current === null;
    current = `${slug}/${env}`;
    connection.value = 'connecting';
    if (!isFirst) open();
  });
  whileSeen(open, () => {
    attempt += 1;
    source?.close();
  });
}

/**
 * Calls `react` after events that `concerns` picks, and when the stream was opened. The next time begins `every` ms after the last has
 * ended: a server that is slow, or events that come in thousands, slow the page down and nothing else.
 */
export function useLive(concerns, react, every = 5_000) {
  const latest = useRef(null);
  latest.current = { concerns, react };
  useEffect(() => {
    let [timer, isBusy, isWanted, isOver, last] = [null, false, false, false, 0];
    const run = async () => {
      timer = null;
      [isBusy, isWanted] = [true, false];
      await latest.current.react();
      [isBusy, last] = [false, Date.now()];
      if (isWanted && !isOver) soon();
    };
    const soon = () => {
      isWanted = true;
      if (!isBusy) timer ??= setTimeout(run, Math.max(0, last + every - Date.now()));
    };
    const listener = (event) => latest.current.concerns(event) && soon();
    listeners.add(listener);
    const seen = opened.peek();
    const stop = effect(() => { if (opened.value !== seen) soon(); });
    return () => {
      isOver = true;
      listeners.delete(listener);
      clearTimeout(timer);
      stop();
    };
  }, []);
}

/** Calls `react` while the page is looked at, `every` ms after the last time has ended: for what no event tells of. */
export function useEvery(react, every, isWanted = true) {
  const latest = useRef(null);
  latest.current = react;
  useEffect(() => {
    if (!isWanted) return undefined;
    let [timer, isOpen] = [null, false];
    const later = () => { if (isOpen) timer ??= setTimeout(run, every); };
    const run = async () => {
      timer = null;
      await latest.current();
      later();
    };
    const open = () => {
      isOpen = true;
      later();
    };
    return whileSeen(open, () => {
      isOpen = false;
      clearTimeout(timer);
      timer = null;
    });
  }, [every, isWanted]);
}
