import { call, currency, query } from '../api.js';
import { html } from '../html.js';
import { duration, money } from '../format.js';
import { useLive } from '../live.js';
import { Badge, Choice, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { whoOf } from './overview.js';

const text = words.calls;
const STATUSES = ['queued', 'in_progress', 'completed', 'failed', 'no_answer', 'voicemail', 'busy'];
const DIRECTIONS = ['inbound', 'outbound'];

export const directionOf = ({ type, direction }) => words.direction(type === 'webrtc' ? type : direction);

export function Calls() {
  const asked = Object.fromEntries(['status', 'direction'].map((name) => [name, place.value.query.get(name) ?? '']));
  const pages = usePages((cursor) => call('GET', `/sessions${query({ ...asked, cursor, limit: 50 })}`), [asked.status, asked.direction]);
  const { data: inMoney } = useLoad(currency, []);
  useLive(({ type }) => type.startsWith('session.'), pages.reload);
  const row = (session) => ({
    key: session.id,
    cells: [
      html`<a href=${to('calls', session.id)}>${whoOf(session)}</a>`, directionOf(session),
      html`<${Badge} of=${session.status} />`, html`<${Time} of=${session.created_at} />`,
      session.ended_at ? duration(session.duration_seconds) : words.phase(session.phase),
      money(session.actual_cost_cents, inMoney ?? undefined),
    ],
  });
  const filter = (name, values, label) => html`
    <${Choice} id=${name} label=${text.filters[name]} value=${asked[name]} options=${[['', text.any], ...values.map((value) => [value, label(value)])]}
      onChange=${(value) => go(to('calls', '', { ...asked, [name]: value }), { replace: true })} />`;
  return html`
    <${Heading} title=${text.title} />
    <div class="filters">${filter('status', STATUSES, words.status)}${filter('direction', DIRECTIONS, words.direction)}</div>
    <${Loaded} of=${pages}>${(sessions) => sessions.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${sessions.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${asked.status || asked.direction ? text.none : text.empty}</p>`}<//>`;
}
