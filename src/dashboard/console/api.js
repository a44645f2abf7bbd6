// What the pages ask of the server: the same API that programs use, by the cookie of who is signed in.
import { ApiError, api as request } from '../common.js';
import { signal } from './html.js';
import { place } from './place.js';
import { words } from './words.js';

/** Who is signed in: `{ user, workspaces }`. */
export const me = signal(null);
/** The workspace that is looked at, with the person's role; `undefined`: the person is not a member. */
export const workspaceOf = (slug) => me.value?.workspaces.find((workspace) => workspace.slug === slug);
export const mayWrite = () => workspaceOf(place.value.slug)?.role !== 'viewer';
export const isOwner = () => workspaceOf(place.value.slug)?.role === 'owner';

/** Somebody waits for the password: `{ given, refused }`, which the frame's dialog calls. */
export const passwordAsked = signal(null);
let giving = null;

/** Asks the person for the password, once for all that wait for it. */
function passwordAgain() {
  giving ??= new Promise((given, refused) => { passwordAsked.value = { given, refused }; }).finally(() => {
    giving = null;
    passwordAsked.value = null;
  });
  return giving;
}

const wantsPassword = ({ status, param }, path) => status === 403 && param === 'password' && path !== '/reauthenticate';

/** Where the person has stayed although the session was over, because something was not saved: what only reads asks no more. */
let stayedAt = null;
const STAYED_MS = 1_500;

let leaving = null;

async function leave() {
  const next = location.pathname + location.search;
  location.assign(`/login?${new URLSearchParams({ next, ...(me.value && { ended: '1' }) })}`);
  await new Promise((later) => { setTimeout(later, STAYED_MS); });
  stayedAt = location.pathname;
  leaving = null;
}

/** Leaves for the sign-in, once for all that is refused. The browser lets the person stay: then the request has failed. */
async function signIn(method, error) {
  if (method === 'GET' && stayedAt === location.pathname) throw error;
  leaving ??= leave();
  await leaving;
  throw error;
}

/** One request to a route of the dashboard itself; a session that is over leads to the sign-in. */
export async function ask(method, path, body, headers) {
  try {
    return await request(method, path, body, headers);
  } catch (error) {
    if (error.status === 401) return signIn(method, error);
    if (!wantsPassword(error, path)) throw error;
    await passwordAgain().catch(() => { throw new ApiError(words.password.notGiven); });
    return request(method, path, body, headers);
  }
}

/** What was sent and not answered, with its `Idempotency-Key`: whoever presses again soon sends the same, and it is done once. */
const unanswered = new Map();
const MOST_UNANSWERED = 100;
/** Pressed later than that, it is another wish. */
const SAME_PRESS_MS = 60_000;
/** These change nothing: what they say is found out anew each time. */
const LOOKS = /\/(preflight|test|mcp_tools)$/;

function newKey() {
  // Not `randomUUID`, which pages without https do not have.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** What a request is about: of `/t/acme/test/campaigns/{id}/pause` the campaign; null, if it names no object. */
const objectOf = (path) => /^(\/[^/?]+){5}/.exec(path)?.[0] ?? null;

/** An object has changed: what is asked of it now is not what was asked before. */
function forget(object) {
  for (const [press, { path }] of unanswered) if (objectOf(path) === object) unanswered.delete(press);
}

/** Sends it so that it is done once, though it may be sent again. */
async function once(path, body) {
  const press = `${path} ${JSON.stringify(body)}`;
  const known = unanswered.get(press);
  const key = known && Date.now() < known.until ? known.key : newKey();
  if (unanswered.size >= MOST_UNANSWERED) unanswered.clear();
  unanswered.set(press, { key, path, until: Infinity });
  try {
    const answer = await ask('POST', path, body, { 'Idempotency-Key': key });
    unanswered.delete(press);
    return answer;
  } catch (error) {
    const isDecided = error.status > 0 && error.status < 500 && error.code !== 'idempotency_in_progress';
    if (isDecided) unanswered.delete(press);
    else if (unanswered.get(press)?.key === key) unanswered.set(press, { key, path, until: Date.now() + SAME_PRESS_MS });
    throw error;
  }
}

/** One request to the API, in the workspace and environment of the page. `body`: JSON, a Blob or a FormData. */
export async function call(method, path, body) {
  const { slug, env } = place.value;
  const whole = `/t/${encodeURIComponent(slug)}/${env}${path}`;
  if (method === 'GET' || LOOKS.test(path)) return ask(method, whole, body);
  const isOnce = method === 'POST' && !(body instanceof Blob || body instanceof FormData);
  const answer = await (isOnce ? once(whole, body) : ask(method, whole, body));
  const object = objectOf(whole);
  if (object) forget(object);
  return answer;
}

/** `?a=b` of what is there. */
export function query(values) {
  const known = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return known.length ? `?${new URLSearchParams(known)}` : '';
}

/** Where the API is, for what is not JSON: a stream, a recording, a file. */
export function apiUrl(path) {
  const { slug, env } = place.value;
  return `/v1/_internal/t/${encodeURIComponent(slug)}/${env}${path}`;
}

let known = null;
/** In which money the workspace counts. */
export const currency = () => (known ??= call('GET', '/credits').then((credits) => credits.currency).catch((error) => {
  known = null; // it is asked again
  throw error;
}));
