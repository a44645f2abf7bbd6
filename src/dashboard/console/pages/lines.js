// What the pages of numbers, trunks and the do-not-call list share.
import { call, query } from '../api.js';
import { place } from '../place.js';

/** So much is loaded of what is chosen from. */
const MOST = 1_000;

/** All that a list of the API has. */
export async function everything(path, most = MOST) {
  const rows = [];
  let page = null;
  do {
    page = await call('GET', path + query({ limit: 100, cursor: page?.next_cursor }));
    rows.push(...page.data);
  } while (page.has_more && rows.length < most);
  return rows;
}

/** `[id, name]` of each, for a `Select`. */
export const choices = (rows, none) => [['', none], ...rows.map(({ id, name }) => [id, name])];

/** What somebody has written, without blanks around it; null: nothing. */
export const written = (values, name) => values.get(name)?.trim() || null;

/** A message of the API as a sentence: `is not a number` → `Is not a number.`. */
export function sentence(message) {
  const plain = message.replaceAll('`', '');
  return `${plain[0].toUpperCase()}${plain.slice(1)}${/[.!?]$/.test(plain) ? '' : '.'}`;
}

/** The same page in the other environment. */
export const inEnv = (env) => `/t/${encodeURIComponent(place.value.slug)}/${env}/${[place.value.page, place.value.id].filter(Boolean).join('/')}`;

/** After a dialog whose opener went with what was done: the focus is at the page's beginning, and not nowhere. */
export function keepFocus() {
  if (document.activeElement === document.body) document.getElementById('title')?.focus();
}
