import { call, currency, query } from '../api.js';
import { Dates, between } from '../dates.js';
import { html, useState } from '../html.js';
import { duration, money } from '../format.js';
import { everything } from '../lists.js';
import { useLive } from '../live.js';
import { Badge, Choice, Heading, Loaded, More, Table, Time, Typed, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { whoOf } from './overview.js';

const text = words.calls;
const STATUSES = ['queued', 'in_progress', 'completed', 'failed', 'no_answer', 'voicemail', 'busy'];
/** Several at once, under one name. */
const GROUPS = [['queued,in_progress', text.live], ['failed,no_answer,voicemail,busy', text.notReached]];
const DIRECTIONS = ['inbound', 'outbound'];
/** What the address may say, under the names of the API; and what stands folded away. */
const FILTERS = ['phone_number', 'status', 'agent_id', 'campaign_id', 'contact_id', 'direction', 'type', 'disposition_code', 'client_reference_id'];
const RARE = ['direction', 'type', 'disposition_code', 'client_reference_id', 'from', 'to'];
/** Agents and campaigns to choose from. */
const MOST = 300;

export const directionOf = ({ type, direction }) => words.direction(type === 'webrtc' ? type : direction);

/** A number as the API takes it, however it is set apart with blanks, dots and brackets. */
export const numberOf = (typed) => typed.trim().replace(/^00/, '+').replace(/[\s().\-/]/g, '');

const asked = () => Object.fromEntries([...FILTERS, 'from', 'to'].map((name) => [name, place.value.query.get(name) ?? '']));
const set = (change) => go(to('calls', '', { ...asked(), ...change }), { replace: true });

const Written = ({ name, clean = (typed) => typed.trim(), ...rest }) => html`
  <${Typed} id="filter-${name}" name=${name} value=${asked()[name]} onChange=${(typed) => set({ [name]: clean(typed) })} ...${rest} />`;

/** `options`: `[value, text]`. What the address names stands there even if it is not among them. */
const Chosen = ({ name, label, any = text.any, options }) => {
  const value = asked()[name];
  const all = [['', any], ...options, ...value && options.every(([known]) => known !== value) ? [[value, value]] : []];
  return html`<${Choice} id="filter-${name}" label=${label} value=${value} options=${all} onChange=${(chosen) => set({ [name]: chosen })} />`;
};

function Filters({ agents, campaigns }) {
  const now = asked();
  const [isOpen, setIsOpen] = useState(RARE.some((name) => now[name]));
  const codes = new Set([...agents, ...campaigns].flatMap(({ dispositions = [] }) => dispositions.map(({ code }) => code)));
  const named = (rows) => rows.map(({ id, name }) => [id, name]);
  // Each field filters by itself; the button is for those who look for one.
  return html`
    <form class="stack" role="search" aria-label=${text.title} onSubmit=${(event) => event.preventDefault()}>
      <div class="filters call-filters">
        <${Written} name="phone_number" type="tel" label=${text.filters.number} hint=${text.numberHint} clean=${numberOf} />
        <${Chosen} name="status" label=${text.filters.status} options=${[...GROUPS, ...STATUSES.map((name) => [name, words.status(name)])]} />
        <${Chosen} name="agent_id" label=${text.filters.agent} any=${text.anyAgent} options=${named(agents)} />
        <${Chosen} name="campaign_id" label=${text.filters.campaign} any=${text.anyCampaign} options=${named(campaigns)} />
      </div>
      <details open=${isOpen} onToggle=${({ target }) => setIsOpen(target.open)}><summary>${text.more}</summary>
        <div class="filters call-filters more-filters">
          <${Chosen} name="direction" label=${text.filters.direction} options=${DIRECTIONS.map((name) => [name, words.direction(name)])} />
          <${Chosen} name="type" label=${text.filters.type} options=${Object.entries(text.types)} />
          <${Written} name="disposition_code" label=${text.filters.disposition} known=${[...codes]} />
          <${Written} name="client_reference_id" label=${text.filters.reference} />
          <${Dates} set=${set} />
        </div>
      </details>
      <div class="actions left">
        <button class="button quiet small">${text.apply}</button>
        ${Object.values(now).some(Boolean) && html`
          <button type="button" class="button quiet small" onClick=${() => go(to('calls'), { replace: true })}>${text.clear}</button>`}
      </div>
      ${now.contact_id && html`<p class="notice">${text.oneContact}</p>`}
    </form>`;
}

/** The names of what filters. Without them the list still stands. */
async function names() {
  const [agents, campaigns] = await Promise.all(['/agents', '/campaigns'].map((path) => everything(path, { most: MOST }).catch(() => [])));
  return { agents, campaigns };
}

export function Calls() {
  const now = asked();
  const { from, to: until, ...filters } = now;
  const load = (cursor) => call('GET', `/sessions${query({ ...filters, ...between(), cursor, limit: 50 })}`);
  const pages = usePages(load, [JSON.stringify(now)]);
  const { data: inMoney } = useLoad(currency, []);
  const { data: known } = useLoad(names, []);
  useLive(({ type }) => type.startsWith('session.'), pages.reload);
  const agentNames = new Map(known?.agents.map(({ id, name }) => [id, name]));
  const row = (session) => ({
    key: session.id,
    cells: [
      html`<a href=${to('calls', session.id)}>${whoOf(session)}</a>`, directionOf(session),
      html`<${Badge} of=${session.status} />${session.disposition_code && html` <span class="hint wrap">${session.disposition_code}</span>`}`,
      html`<span class="wrap">${agentNames.get(session.agent_id) ?? words.none}</span>`, html`<${Time} of=${session.created_at} />`,
      session.ended_at ? duration(session.duration_seconds) : words.phase(session.phase), money(session.actual_cost_cents, inMoney ?? undefined),
    ],
  });
  return html`
    <${Heading} title=${text.title} />
    <${Filters} agents=${known?.agents ?? []} campaigns=${known?.campaigns ?? []} />
    <${Loaded} of=${pages}>${(sessions) => sessions.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${sessions.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${Object.values(now).some(Boolean) ? text.none : text.empty}</p>`}<//>`;
}
