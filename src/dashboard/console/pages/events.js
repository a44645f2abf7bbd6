import { call, mayWrite, query } from '../api.js';
import { html, useState } from '../html.js';
import { Form, Select } from '../form.js';
import { useLive } from '../live.js';
import { Choice, Confirm, Facts, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { Deliveries, Envelope, envelopeOf, useDeliveries } from './deliveries.js';
import { receives } from './endpoint_form.js';
import { EventTypes } from './event_types.js';
import { Tabs, TypeName, exact, shortUrl, unmarked } from './pieces.js';
import { typesOf } from './webhooks.js';

const text = words.events;
const VIEWS = ['list', 'types'];
/** An event may hold a whole talk. */
const PAGE = 25;
const MOST_ENDPOINTS = 100;

/** What an event may be about, in the order in which one of its ids is its subject, and the page of each. */
const SUBJECTS = [
  ['session_id', 'calls'], ['room_id', 'rooms'], ['campaign_id', 'campaigns'], ['voice_id', 'voices'], ['endpoint_id', 'webhooks'],
];

/** Under which id it is found, and where to look at that. A contact has no page of its own: its campaign shows it. */
function subjectOf({ type, data }) {
  const campaign = data.campaign_id && to('campaigns', data.campaign_id);
  if (type.startsWith('campaign.contact_')) return { name: 'contact_id', id: data.contact_id, href: campaign };
  const [name, page] = SUBJECTS.find(([one]) => data[one]) ?? [];
  return name && { name, id: data[name], href: to(page, data[name]) };
}

/** Ids of one minute begin alike: their ends tell them apart. */
const short = (id) => `…${id.slice(-8)}`;

function Subject({ of: subject, type }) {
  if (!subject) return words.none;
  const label = `${text.subjects[subject.name]} ${short(subject.id)}`;
  const only = to('events', '', { subject: subject.id });
  return html`<a href=${subject.href}>${label}</a> <a class="hint" href=${only} aria-label="${text.only}: ${label}, ${type}">${text.only}</a>`;
}

function Filters({ types, asked }) {
  const narrow = (changed) => go(to('events', '', { ...asked, ...changed }), { replace: true });
  const find = (event) => {
    event.preventDefault();
    narrow({ subject: new FormData(event.target).get('subject').trim() });
  };
  return html`
    <div class="filters">
      <${Choice} id="type" label=${text.filters.type} value=${asked.type} options=${[['', text.any], ...types.map(({ name }) => [name, name])]}
        onChange=${(type) => narrow({ type })} />
      <form class="field subject" onSubmit=${find}>
        <label for="subject">${text.filters.subject}</label>
        <div class="with-button">
          <input key=${asked.subject} id="subject" name="subject" type="search" maxlength="100" defaultValue=${asked.subject}
            autocomplete="off" spellcheck="false" />
          <button class="button quiet">${text.filters.button}</button>
        </div>
      </form>
      ${(asked.type || asked.subject)
        && html`<button class="button quiet small clear" onClick=${() => narrow({ type: '', subject: '' })}>${text.filters.clear}</button>`}
    </div>`;
}

function List() {
  const asked = Object.fromEntries(['type', 'subject'].map((name) => [name, place.value.query.get(name) ?? '']));
  const { data: types } = useLoad(typesOf, []);
  const load = (cursor) => call('GET', `/events${query({ type: asked.type, subject_id: asked.subject, cursor, limit: PAGE })}`);
  const pages = usePages(load, [asked.type, asked.subject]);
  useLive(({ type }) => !asked.type || type === asked.type, pages.reload, 5_000);
  const row = (event) => ({
    key: event.id,
    cells: [
      html`<a href=${to('events', event.id)}><${TypeName} of=${event.type} /></a>`, html`<${Time} of=${event.created_at} format=${exact} />`,
      html`<${Subject} of=${subjectOf(event)} type=${event.type} />`,
    ],
  });
  return html`
    <${Heading} title=${text.title} />
    <p>${text.intro}</p>
    <${Filters} types=${types ?? []} asked=${asked} />
    <${Loaded} of=${pages}>${(events) => events.length
      ? html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${events.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${asked.type || asked.subject ? text.none : text.empty}</p>`}<//>`;
}

export function Events() {
  const view = place.value.query.get('show') ?? '';
  return html`
    <${Tabs} label=${text.views.label} page="events" current=${view} tabs=${VIEWS.map((name, n) => [n ? name : '', text.views[name]])} />
    ${view === 'types' ? html`<${EventTypes} />` : html`<${List} />`}`;
}

/** Sends it again, to one endpoint or to all that want events of its type. */
function Replay({ event, endpoints, reload }) {
  const [asks, setAsks] = useState(null);
  const [done, setDone] = useState('');
  const active = endpoints.filter(({ status }) => status === 'active');
  const subscribed = active.filter((endpoint) => receives(endpoint, event.type));
  if (!active.length) return html`<p class="muted">${text.replay.nobody}</p>`;
  const options = [...subscribed.length ? [['', text.replay.all(subscribed.length)]] : [], ...active.map(({ id, url }) => [id, shortUrl(url)])];
  const names = new Map(options);
  const ask = (values) => {
    const id = values.get('endpoint_id');
    const act = async () => {
      const { data } = await call('POST', `/events/${event.id}/replay`, id ? { endpoint_id: id } : {});
      setDone(text.replay.done(data.length));
      await reload();
    };
    setDone('');
    setAsks({ asks: { ...text.replay.confirm, text: text.replay.confirm.text(names.get(id)) }, act });
  };
  return html`
    <${Form} act=${ask} submit=${text.replay.button}>
      <${Select} name="endpoint_id" label=${text.replay.to} options=${options} defaultValue=${options[0][0]} />
    <//>
    <p class="hint" role="status">${done}</p>
    ${asks && html`<${Confirm} ...${asks} isDanger=${false} close=${() => setAsks(null)} />`}`;
}

const listed = (path) => call('GET', path).then(({ data }) => data);

async function load(id) {
  const envelope = await envelopeOf(id);
  const [endpoints, types] = await Promise.all([listed(`/webhook_endpoints${query({ limit: MOST_ENDPOINTS })}`), typesOf()]);
  return { envelope, event: JSON.parse(envelope), endpoints, types };
}

/** Everything that it names and that has a page. */
function relatedOf({ type, data }) {
  // The voice of a call may be the service's own, which has no page.
  const known = SUBJECTS.filter(([name]) => data[name] && !(name === 'voice_id' && type.startsWith('session.')));
  return known.map(([name, page]) => [text.subjects[name], html`<a href=${to(page, data[name])}>${short(data[name])}</a>`]);
}

export function Event({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  const deliveries = useLoad(() => listed(`/events/${encodeURIComponent(id)}/deliveries`), [id]);
  useDeliveries(deliveries);
  // An endpoint was suspended or has come back.
  useLive(({ type }) => type.startsWith('webhook.'), () => Promise.all([loaded.reload(), deliveries.reload()]), 5_000);
  return html`
    <${Loaded} of=${loaded} isPage>${({ envelope, event, endpoints, types }) => {
      const endpointOf = ({ endpoint_id: wanted }) => endpoints.find((endpoint) => endpoint.id === wanted) ?? null;
      const where = (delivery) => {
        const endpoint = endpointOf(delivery);
        return endpoint
          ? html`<a href=${to('webhooks', endpoint.id)}>${shortUrl(endpoint.url)}</a>`
          : html`<span class="muted">${text.gone} ${short(delivery.endpoint_id)}</span>`;
      };
      return html`
        <${Heading} title=${event.type} />
        <p>${unmarked(types.find(({ name }) => name === event.type)?.description)}</p>
        <${Facts} of=${[
          [text.facts.created, html`<${Time} of=${event.created_at} format=${exact} />`], ...relatedOf(event),
          [text.facts.id, html`<code>${event.id}</code>`],
        ]} />
        <section class="stack tight" aria-labelledby="envelope"><h2 id="envelope">${text.envelope}</h2>
          <${Envelope} id=${event.id} envelope=${envelope} />
        </section>
        <section class="stack tight" aria-labelledby="deliveries"><h2 id="deliveries">${text.deliveries}</h2>
          <${Loaded} of=${deliveries}>${(all) => all.length
            ? html`<${Deliveries} label=${text.deliveries} first=${[text.endpoint, where]} deliveries=${all} endpointOf=${endpointOf}
                reload=${deliveries.reload} />`
            : html`<p class="empty panel">${text.noDeliveries}</p>`}<//>
        </section>
        ${mayWrite() && html`<section class="stack tight" aria-labelledby="replay"><h2 id="replay">${text.replay.title}</h2>
          <${Replay} event=${event} endpoints=${endpoints} reload=${deliveries.reload} /></section>`}`;
    }}<//>`;
}
