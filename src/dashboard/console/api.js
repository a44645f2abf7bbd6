// What the pages ask of the server: the same API that programs use, by the cookie of who is signed in.
import { api as request } from '../common.js';
import { signal } from './html.js';
import { place } from './place.js';

/** Who is signed in: `{ user, workspaces }`. */
export const me = signal(null);
/** The workspace that is looked at, with the person's role; `undefined`: the person is not a member. */
export const workspaceOf = (slug) => me.value?.workspaces.find((workspace) => workspace.slug === slug);
export const mayWrite = () => workspaceOf(place.value.slug)?.role !== 'viewer';

/** One request to a route of the dashboard itself; a session that is over leads to the sign-in. */
export async function ask(method, path, body) {
  try {
    return await request(method, path, body);
  } catch (error) {
    if (error.status === 401) {
      location.assign(`/login?${new URLSearchParams({ next: location.pathname + location.search, ended: '1' })}`);
      return new Promise(() => {}); // the page is left
    }
    throw error;
  }
}

/** One request to the API, in the workspace and environment of the page. */
export function call(method, path, body) {
  const { slug, env } = place.value;
  return ask(method, `/t/${encodeURIComponent(slug)}/${env}${path}`, body);
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
