import { CallboardConnectionError, CallboardError } from './errors.js';

type Fetch = typeof globalThis.fetch;

export interface TransportOptions {
  /** What sends the requests. Default: the global `fetch`. */
  fetch?: Fetch;
  /** How often a request is repeated after a network fault or an answer that asks for it. Default: 4. */
  maxRetries?: number;
  /**
   * How long one attempt may take, to the end of a JSON answer or to the beginning of any other. Default: 60,000. Nothing is
   * repeated after that. Tests, simulations, previews and preflights may need more.
   */
  timeoutMs?: number;
  /** Waits between two attempts, until the signal is aborted. Replace it in tests. */
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const FIRST_WAIT_MS = 500;
/** A request that has to wait longer fails at once, and its error says how long. */
const LONGEST_WAIT_MS = 60_000;
const KEY = 'Idempotency-Key';

/** A `fetch` that gives each POST its idempotency key, repeats what failed for the moment, and throws all other failures. */
export function transport(options: TransportOptions): Fetch {
  const { fetch = globalThis.fetch, maxRetries = 4, timeoutMs = 60_000, sleep = wait } = options;
  return async (input, init) => {
    const request = new Request(input, init);
    // Before the first attempt, so that all have the same: with another key a repeat would be another request.
    if (request.method === 'POST' && !request.headers.has(KEY)) request.headers.set(KEY, crypto.randomUUID());

    for (let attempts = 1; ; attempts++) {
      const isLast = attempts > maxRetries;
      try {
        // A body can be sent only once, so all attempts but the last one send a copy.
        return await attempt(fetch, isLast ? request : request.clone(), timeoutMs);
      } catch (error) {
        const asked = error instanceof CallboardError ? (error.retryAfterSeconds ?? 0) : 0;
        const pause = Math.max(FIRST_WAIT_MS * 2 ** (attempts - 1), asked * 1000);
        if (isLast || !isForTheMoment(error) || pause > LONGEST_WAIT_MS) throw error;
        // Up to a quarter more, so that clients that failed together do not come back together.
        await sleep(pause * (1 + Math.random() / 4), request.signal);
      }
    }
  };
}

async function attempt(fetch: Fetch, request: Request, timeoutMs: number): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  try {
    const response = await fetch(request, { signal: AbortSignal.any([request.signal, late.signal]) });
    if (!response.ok) throw await CallboardError.from(response);
    // Read here: one that breaks off is a fault like any other. Sound, CSV and streams are left to the caller.
    const isJson = response.headers.get('Content-Type')?.startsWith('application/json');
    return isJson ? new Response(await response.text(), response) : response;
  } catch (error) {
    if (error instanceof CallboardError) throw error;
    // The caller gave up: in the caller's own words.
    if (request.signal.aborted) throw request.signal.reason;
    const what = late.signal.aborted ? `no answer within ${timeoutMs} ms` : 'no answer, the connection failed';
    // Without the query: numbers and signatures of links do not belong into logs.
    const { origin, pathname } = new URL(request.url);
    const key = request.headers.get(KEY) ?? undefined;
    throw new CallboardConnectionError(`${request.method} ${origin}${pathname}: ${what}`, late.signal.aborted, key, error);
  } finally {
    clearTimeout(timer);
  }
}

/** May the same request succeed a little later? */
function isForTheMoment(error: unknown): boolean {
  if (error instanceof CallboardConnectionError) return !error.isTimeout;
  if (!(error instanceof CallboardError)) return false;
  // 502 and 504 are those of a proxy whose server restarts. What is in progress is an attempt that has lost its connection.
  return [429, 502, 503, 504].includes(error.status) || error.code === 'idempotency_in_progress';
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
