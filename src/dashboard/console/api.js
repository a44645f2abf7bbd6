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

/** One request to a route of the dashboard itself; a session that is over leads to the sign-in. */
export async function ask(method, path, body, headers) {
  try {
    return await request(method, path, body, headers);
  } catch (error) {
    if (error.status === 401) {
      location.assign(`/login?${new URLSearchParams({ next: location.pathname + location.search, ended: '1' })}`);
      return new Promise(() => {}); // the page is left
    }
    if (!wantsPassword(error, path)) throw error;
    await passwordAgain().catch(() => { throw new ApiError(words.password.notGiven); });
    return request(method, path, body, headers);
  }
}

/** What was sent and not answered, with its `Idempotency-Key`: whoever presses again sends the same, and it is done once. */
const unanswered = new Map();
const MOST_UNANSWERED = 100;

function newKey() {
  // Not `randomUUID`, which pages without https do not have.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** One request to the API, in the workspace and environment of the page. `body`: JSON, a Blob or a FormData. */
export async function call(method, path, body) {
  const { slug, env } = place.value;
  const whole = `/t/${encodeURIComponent(slug)}/${env}${path}`;
  if (method !== 'POST' || body instanceof Blob || body instanceof FormData) return ask(method, whole, body);
  const press = `${whole} ${JSON.stringify(body)}`;
  const key = unanswered.get(press) ?? newKey();
  if (unanswered.size >= MOST_UNANSWERED) unanswered.clear();
  unanswered.set(press, key);
  try {
    const answer = await ask(method, whole, body, { 'Idempotency-Key': key });
    unanswered.delete(press);
    return answer;
  } catch (error) {
    const isDecided = error.status > 0 && error.status < 500 && error.code !== 'idempotency_in_progress';
    if (isDecided) unanswered.delete(press);
    throw error;
  }
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
