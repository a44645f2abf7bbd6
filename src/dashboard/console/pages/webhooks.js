import { call, mayWrite, query } from '../api.js';
import { html, useState } from '../html.js';
import { count, time } from '../format.js';
import { useLive } from '../live.js';
import { Badge, Heading, Loaded, More, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { EndpointFields, SecretDialog, eventsOf, settingsOf } from './endpoint_form.js';
import { Tabs, shortUrl } from './pieces.js';
import { Verify } from './verify.js';

const text = words.webhooks;
const VIEWS = ['endpoints', 'verify'];
const PAGE = 20;
/** Of so many it is asked what waits for them, a request for each; and so often at most. */
const MOST_ASKED = 20;
const ASK_EVERY_MS = 30_000;

export const typesOf = () => call('GET', '/event_types').then(({ data }) => data);

/** What waits for each, by its id, where that can be known. */
async function loadOpen(ids) {
  if (!ids.length) return null;
  const open = ids.map((id) => call('GET', `/webhook_endpoints/${id}/stats`).then((stats) => [id, stats.open], () => [id]));
  return new Map(await Promise.all(open));
}

/** How an endpoint fares, as `[what a badge shows, its words]`. */
export function healthOf({ status, failure_streak: streak, last_status: last }) {
  if (status !== 'active') return [status, text.status(status)];
  if (streak > 0) return ['failed', text.failing(count(streak))];
  if (last === null) return ['', text.unused];
  return last >= 200 && last < 300 ? ['active', text.healthy] : ['failed', text.lastFailed];
}

function Health({ endpoint }) {
  const { suspended_at: suspended, paused_until: paused, failure_streak: streak } = endpoint;
  const [kind, label] = healthOf(endpoint);
  return html`<${Badge} of=${kind}>${label}<//>
    ${suspended && html`<br /><span class="hint">${text.since(time(suspended), count(streak))}</span>`}
    ${paused && html`<br /><span class="hint">${text.pausedUntil(time(paused))}</span>`}`;
}

/** `3 to send, 1 to retry`, or nothing. */
export function waitingOf(open) {
  const some = ['pending', 'retrying', 'held'].filter((name) => open?.[name]);
  return some.map((name) => text.waiting[name](count(open[name]))).join(', ');
}

const row = (open) => (endpoint) => ({
  key: endpoint.id,
  cells: [
    html`<a href=${to('webhooks', endpoint.id)}>${shortUrl(endpoint.url)}</a>
      ${endpoint.description && html`<br /><span class="hint wrap">${endpoint.description}</span>`}`,
    html`<span class="wrap">${eventsOf(endpoint)}</span>`, html`<${Health} endpoint=${endpoint} />`,
    waitingOf(open?.get(endpoint.id)) || (open && !open.has(endpoint.id) ? text.onItsPage : words.none), html`<${Time} of=${endpoint.last_success_at} />`,
  ],
});

function Add({ types, close }) {
  const [made, setMade] = useState(null);
  const act = async (values) => {
    const endpoint = await call('POST', '/webhook_endpoints', settingsOf(values));
    setMade(endpoint);
    return endpoint.secret;
  };
  const leave = () => {
    close();
    if (made) go(to('webhooks', made.id));
  };
  return html`
    <${SecretDialog} title=${text.add.title} act=${act} submit=${text.add.submit} close=${leave} done=${text.secret} isNarrow=${false}>
      <${EndpointFields} types=${types} />
    <//>`;
}

function Endpoints() {
  const pages = usePages((cursor) => call('GET', `/webhook_endpoints${query({ cursor, limit: PAGE })}`), []);
  const asked = (pages.data ?? []).slice(0, MOST_ASKED).map(({ id }) => id);
  const open = useLoad(() => loadOpen(asked), [asked.join()]);
  const types = useLoad(typesOf, []);
  const [isAdding, setIsAdding] = useState(false);
  // Any event may be delivered, and change how a receiver fares.
  useLive(() => true, pages.reload, 10_000);
  useLive(() => true, open.reload, ASK_EVERY_MS);
  return html`
    <${Heading} title=${text.title} />
    <p>${text.intro}</p>
    ${mayWrite() && html`<div class="actions left"><button class="button" onClick=${() => setIsAdding(true)}>${text.add.button}</button></div>`}
    <${Loaded} of=${pages}>${(endpoints) => endpoints.length
      ? html`<${Table} label=${text.views.endpoints} columns=${Object.values(text.columns)} rows=${endpoints.map(row(open.data))} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${mayWrite() ? text.empty : text.emptyForViewers}</p>`}<//>
    ${isAdding && html`<${Loaded} of=${types}>${(all) => html`<${Add} types=${all} close=${() => setIsAdding(false)} />`}<//>`}`;
}

export function Webhooks() {
  const view = place.value.query.get('show') ?? '';
  return html`
    <${Tabs} label=${text.views.label} page="webhooks" current=${view} tabs=${VIEWS.map((name, n) => [n ? name : '', text.views[name]])} />
    ${view === 'verify' ? html`<${Verify} />` : html`<${Endpoints} />`}`;
}
