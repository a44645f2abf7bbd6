// What happens, as it happens: one stream of events for the page, which reconnects by itself and says when it is cut off.
import { apiUrl, ask, call } from './api.js';
import { effect, signal, useEffect, useRef } from './html.js';
import { place } from './place.js';

/** `connecting`, `live`, or `lost`. */
export const connection = signal('connecting');
/** Counts how often the stream came back: what was missed meanwhile is loaded anew. */
export const returns = signal(0);

const RETRY_MS = 5_000;
const listeners = new Set();
let source = null;
let types = null;

async function open(isWanted) {
  try {
    types ??= (await call('GET', '/event_types')).data.map(({ name }) => name);
  } catch {
    return retry(isWanted);
  }
  if (!isWanted()) return;
  source = new EventSource(apiUrl('/events/stream'));
  source.onopen = () => {
    if (connection.value === 'lost') returns.value += 1;
    connection.value = 'live';
  };
  source.onerror = () => {
    connection.value = 'lost';
    if (source?.readyState === EventSource.CLOSED) retry(isWanted);
  };
  for (const type of types) {
    source.addEventListener(type, ({ data }) => {
      const event = JSON.parse(data);
      for (const listener of listeners) listener(event);
    });
  }
}

function retry(isWanted) {
  connection.value = 'lost';
  setTimeout(async () => {
    if (!isWanted()) return;
    // Tells a session that is over, which leads to the sign-in, from a server that is not there.
    await ask('GET', '/me').catch(() => {});
    open(isWanted);
  }, RETRY_MS);
}

/** Keeps the stream of the place's environment open. */
export function follow() {
  let current = '';
  effect(() => {
    const { slug, env } = place.value;
    if (!slug || `${slug}/${env}` === current) return;
    current = `${slug}/${env}`;
    const mine = current;
    source?.close();
    connection.value = 'connecting';
    open(() => mine === current);
  });
}

/** Calls `react` after events that `concerns` picks, at most every `every` ms, and after the stream came back. */
export function useLive(concerns, react, every = 2_000) {
  const latest = useRef(null);
  latest.current = { concerns, react };
  useEffect(() => {
    let timer = null;
    let last = 0;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = null;
        last = Date.now();
        latest.current.react();
      }, Math.max(0, last + every - Date.now()));
    };
    const listener = (event) => latest.current.concerns(event) && soon();
    listeners.add(listener);
    const seen = returns.value;
    const stop = effect(() => { if (returns.value !== seen) soon(); });
    return () => {
      listeners.delete(listener);
      clearTimeout(timer);
      stop();
    };
  }, []);
}
