// Small parts that the pages of webhooks and events share.
import { html } from '../html.js';
import { to } from '../place.js';
import { words } from '../words.js';

/** Characters of a body that are drawn. */
const MOST_SHOWN = 100_000;
const LONGEST_URL = 100;

/** Views of one page; the address says which of them is seen. The first needs no name there. */
export const Tabs = ({ label, page, tabs, current }) => html`
  <nav class="tabs" aria-label=${label}>
    ${tabs.map(([name, text]) => html`<a key=${name} href=${to(page, '', { show: name })} aria-current=${name === current ? 'page' : undefined}>${text}</a>`)}
  </nav>`;

/** Text as it is, which may be scrolled by keyboard too. */
export const Code = ({ label, text }) => html`
  <pre class="code" tabindex="0" role="group" aria-label=${label}><code>${text.slice(0, MOST_SHOWN)}</code></pre>
  ${text.length > MOST_SHOWN && html`<p class="hint">${words.events.cut}</p>`}`;

const second = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
/** To the second: events and attempts follow each other closely. */
export const exact = (iso) => second.format(new Date(iso));

/** An address may have 2,000 characters. */
export const shortUrl = (url) => (url.length > LONGEST_URL ? `${url.slice(0, LONGEST_URL)}…` : url);

/** JSON over several lines; what is not JSON as it is. */
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** An event's type, which may be broken at its dots. */
export const TypeName = ({ of }) => of.split(/(?<=[._])/).map((part, n) => [n > 0 && html`<wbr />`, part]);

/** The catalogue's descriptions mark names for the docs. */
export const unmarked = (description = '') => description.replaceAll('`', '');

/** `session.ended` → `session`. */
export const groupOf = (type) => type.split('.')[0];

/** The catalogue in groups: `[name, types]`. */
export function inGroups(types) {
  const groups = new Map();
  for (const type of types) groups.set(groupOf(type.name), [...groups.get(groupOf(type.name)) ?? [], type]);
  return [...groups];
}
