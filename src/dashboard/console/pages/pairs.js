// Names and values that somebody writes into a field: one `name = value` per line.
import { ApiError } from '../../common.js';
import { Area } from '../form.js';
import { html } from '../html.js';
import { Facts } from '../parts.js';
import { words } from '../words.js';

const text = words.pairs;

/** A line's name and value; null, if it is no pair. */
export function pairOf(line) {
  const at = line.indexOf('=');
  return at < 1 ? null : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** What was written as an object. What cannot be read is said at the field. */
export function pairsOf(values, field) {
  const pairs = new Map();
  for (const line of (values.get(field) ?? '').split('\n').map((line) => line.trim()).filter(Boolean)) {
    const [name, value] = pairOf(line) ?? [];
    if (!name) throw new ApiError(text.notPair(line), { param: field });
    if (pairs.has(name)) throw new ApiError(text.twice(name), { param: field });
    pairs.set(name, value);
  }
  return Object.fromEntries(pairs);
}

export const Pairs = ({ name, label, ...rest }) => html`<${Area} name=${name} label=${label} hint=${text.hint} rows="3" spellcheck="false" ...${rest} />`;

/** How they are shown; nothing if there are none. */
export const PairFacts = ({ title, of }) => Object.keys(of).length > 0 && html`
  <section class="stack tight"><h2>${title}</h2><${Facts} of=${Object.entries(of).map(([name, value]) => [name, String(value ?? words.none)])} /></section>`;
