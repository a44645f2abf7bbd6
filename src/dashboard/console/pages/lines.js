// What the pages of numbers, trunks and the do-not-call list share.
import { place } from '../place.js';

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
