import { call, query } from '../api.js';
import { html, useEffect } from '../html.js';
import { nameOf } from '../format.js';
import { Badge, Heading, Loaded, Table, Time, useLoad } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { numberOf } from './calls.js';
import { whoOf } from './overview.js';

const text = words.find;
const SHOWN = 10;
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const NUMBER = /^\+\d{4,15}$/;

/** What may have an id: where the API knows it, and the page that shows it. */
const KINDS = [
  ['sessions', 'calls'], ['campaigns', 'campaigns'], ['agents', 'agents'], ['events', 'events'], ['webhook_endpoints', 'webhooks'],
  ['rooms', 'rooms'], ['functions', 'functions'], ['numbers', 'numbers'], ['sip_trunks', 'trunks'], ['imports', 'imports'],
  ['sms_messages', 'messages'], ['email_messages', 'messages'], ['voices', 'voices'],
];

/** Null: there is no such thing. */
const ifThere = (request) => request.catch((error) => {
  if (error.status === 404) return null;
  throw error;
});

/** The address of what has this id; null: nothing has. A recording is heard on its call's page. */
async function pageOf(id) {
  const found = await Promise.all([
    ...KINDS.map(async ([kind, page]) => await ifThere(call('GET', `/${kind}/${id}`)) && to(page, id)),
    ifThere(call('GET', `/recordings/${id}`)).then((recording) => recording && to('calls', recording.session_id)),
  ]);
  return found.find(Boolean) ?? null;
}

const list = (path, values) => call('GET', path + query({ ...values, limit: SHOWN }));

/** Groups of what is found: `{ title, Rows, page, all }`; `all` leads to the whole list, where there is one. */
function groupsFor(typed) {
  const calls = (title, filter) => ({ title, Rows: CallRows, load: () => list('/sessions', filter), all: to('calls', '', filter) });
  const contacts = (title, filter) => ({ title, Rows: ContactRows, load: () => contactsOf(filter) });
  const number = numberOf(typed);
  if (NUMBER.test(number)) return [calls(text.calls, { phone_number: number }), contacts(text.phones, { phone_number: number })];
  return [
    contacts(text.people, { name: typed }),
    calls(text.references, { client_reference_id: typed }),
    contacts(text.externals, { external_id: typed }),
    { title: text.agents, Rows: AgentRows, load: () => list('/agents', { name: typed }) },
  ];
}

/** With the names of their campaigns. */
async function contactsOf(filter) {
  const found = await list('/contacts', filter);
  const ids = [...new Set(found.data.map(({ campaign_id: id }) => id))];
  const campaigns = await Promise.all(ids.map((id) => call('GET', `/campaigns/${id}`).catch(() => null)));
  const names = new Map(campaigns.filter(Boolean).map(({ id, name }) => [id, name]));
  return { ...found, data: found.data.map((contact) => ({ ...contact, campaign: names.get(contact.campaign_id) })) };
}

async function search(typed) {
  const page = ID.test(typed) ? await pageOf(typed) : null;
  if (page) return { page };
  const groups = groupsFor(typed);
  const found = await Promise.all(groups.map(({ load }) => load()));
  return { groups: groups.map((group, n) => ({ ...group, found: found[n] })) };
}

const CallRows = ({ title, rows }) => {
  const { who, status, began } = words.calls.columns;
  return html`<${Table} label=${title} columns=${[who, status, began]} rows=${rows.map((session) => ({
    key: session.id,
    cells: [html`<a href=${to('calls', session.id)}>${whoOf(session)}</a>`, html`<${Badge} of=${session.status} />`, html`<${Time} of=${session.created_at} />`],
  }))} />`;
};

const ContactRows = ({ title, rows }) => html`
  <${Table} label=${title} columns=${Object.values(text.columns)} rows=${rows.map((contact) => {
    const address = contact.phone_number || contact.email || words.none;
    const name = nameOf(contact);
    return {
      key: contact.id,
      cells: [
        name ? html`<span class="wrap">${name}</span>` : html`<span class="muted">${words.campaign.nameless}</span>`, html`<span class="wrap">${address}</span>`,
        html`<span class="wrap">${contact.external_id ?? words.none}</span>`,
        html`<a href=${to('campaigns', contact.campaign_id)}>${contact.campaign ?? contact.campaign_id}</a>`, html`<${Badge} of=${contact.status} />`,
        html`<a href=${to('calls', '', { campaign_id: contact.campaign_id, contact_id: contact.id })} aria-label=${text.callsOfWho(name || address)}>${text.callsOf}</a>`,
      ],
    };
  })} />`;

const AgentRows = ({ title, rows }) => html`
  <${Table} label=${title} columns=${Object.values(text.agentTable)} rows=${rows.map(({ id, name, updated_at: changed }) => ({
    key: id, cells: [html`<a href=${to('agents', id)}>${name}</a>`, html`<${Time} of=${changed} />`],
  }))} />`;

const Group = ({ group: { title, Rows, all, found: { data: rows, has_more: hasMore } } }) => html`
  <section class="stack tight"><h2>${title}</h2>
    ${rows.length ? html`<${Rows} title=${title} rows=${rows} />` : html`<p class="muted">${text.none}</p>`}
    ${hasMore && html`<p class="hint">${text.first(SHOWN)}${all && html` <a href=${all}>${text.all}</a>`}</p>`}
  </section>`;

/** What has an id is gone to at once; its own heading is the one to be told. */
function Found({ typed, found: { page, groups } }) {
  useEffect(() => { if (page) go(page, { replace: true }); }, [page]);
  if (page) return html`<p class="muted" role="status">${words.loading}</p>`;
  const isNothing = groups.every(({ found }) => !found.data.length);
  return html`
    <${Heading} title=${text.title(typed)} />
    <p role="status" class=${isNothing ? '' : 'visually-hidden'}>${isNothing ? (ID.test(typed) ? text.noId : text.nothing) : text.found}</p>
    ${groups.map((group) => html`<${Group} key=${group.title} group=${group} />`)}`;
}

export function FindPage() {
  const typed = (place.value.query.get('q') ?? '').trim();
  const loaded = useLoad(() => (typed ? search(typed) : Promise.resolve(null)), [typed]);
  if (!typed) return html`<${Heading} title=${text.title()} /><p>${text.hint}</p>`;
  return html`
    ${loaded.error && html`<${Heading} title=${text.title(typed)} />`}
    <${Loaded} of=${loaded}>${(found) => html`<${Found} key=${typed} typed=${typed} found=${found} />`}<//>`;
}
