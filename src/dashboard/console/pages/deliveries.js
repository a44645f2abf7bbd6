// Deliveries: what was sent to an endpoint, what it answered, and how long each step took.
import { apiUrl, call, mayWrite, query } from '../api.js';
import { html, useState } from '../html.js';
import { count, timeOfDay } from '../format.js';
import { Secret } from '../form.js';
import { useEvery } from '../live.js';
import { Badge, Choice, Facts, Loaded, More, Note, Table, Time, useAct, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { sentence } from './lines.js';
import { Code, TypeName, exact, pretty } from './pieces.js';

const text = words.webhooks.delivery;
const STATUSES = ['pending', 'retrying', 'succeeded', 'failed', 'held', 'cancelled'];
const ORIGINS = ['live', 'replay', 'test'];
const FILTERS = ['status', 'event_type', 'origin'];
/** Each comes with the bodies of its answers. */
const PAGE = 25;
/** A body that is longer is opened, not copied. */
const MOST_COPIED = 20_000;
const SOON_MS = 5_000;

const KIND = { succeeded: 'completed', failed: 'failed', held: 'suspended' };
const Status = ({ of }) => html`<${Badge} of=${KIND[of] ?? of}>${text.status(of)}<//>`;

const isDue = ({ status, next_attempt_at: next }) =>
  (status === 'pending' || status === 'retrying') && (!next || new Date(next) - Date.now() < SOON_MS);
/** Follows deliveries to their end: no event tells of that. */
export const useDeliveries = (loaded) => useEvery(() => (loaded.data ?? []).some(isDue) && loaded.reload(), SOON_MS);

/** `503`, or why no answer came. */
const answerOf = ({ status, error_code: code }) => (status ? String(status) : text.error(code));

/** The bytes that receivers get: parsed and written anew they might be others, and the signature another one. */
export async function envelopeOf(id) {
  const response = await fetch(apiUrl(`/events/${encodeURIComponent(id)}`)).catch(() => null);
  return response?.ok ? response.text() : JSON.stringify(await call('GET', `/events/${encodeURIComponent(id)}`));
}

/** An event as people read it, and as it is signed. */
export function Envelope({ id, envelope }) {
  return html`
    <${Code} label=${text.body} text=${pretty(envelope)} />
    <details><summary>${text.raw}</summary>
      <p class="hint">${text.rawHint}</p>
      ${envelope.length > MOST_COPIED
        ? html`<p><a href=${apiUrl(`/events/${id}`)} target="_blank" rel="noopener">${text.open}</a></p>`
        : html`<${Secret} value=${envelope} label=${text.raw} />`}
    </details>`;
}

/** What was sent around the body. Signatures are made anew for each attempt, and not kept. */
function requestHeaders({ event_id: id, event_type: type, origin }, { signed_at: signedAt }, endpoint) {
  return [
    ['Content-Type', 'application/json'], ['X-Webhook-Id', id], ['X-Webhook-Event', type], ['X-Webhook-Timestamp', signedAt],
    ['X-Webhook-Signature', `sha256=… (${text.notKept})`],
    ...origin === 'replay' ? [['X-Webhook-Replay', 'true']] : [],
    ...(endpoint?.header_names ?? []).map((name) => [name, `… (${text.hidden})`]),
  ];
}

const lines = (headers) => headers.map(([name, value]) => `${name}: ${value}`).join('\n');
const ms = (value) => (value === null ? null : text.ms(count(value)));

function Attempt({ attempt, delivery, endpoint, isLast }) {
  const { n, started_at: started, duration_ms: duration, timings, remote_address: address, status, error_message: error } = attempt;
  const isNew = timings.connect_ms !== null;
  return html`
    <section class="stack tight attempt">
      <h3>${text.attempt(n)} <${Badge} of=${status >= 200 && status < 300 ? 'completed' : 'failed'}>${answerOf(attempt)}<//></h3>
      ${error && html`<p class="error">${sentence(error)}</p>`}
      <${Facts} of=${[
        [text.started, html`<${Time} of=${started} format=${exact} />`], [text.took, ms(duration)], [text.address, address],
        [text.dns, ms(timings.dns_ms)], [text.connect, isNew ? ms(timings.connect_ms) : address && text.reused],
        [text.tls, ms(timings.tls_ms)],
        [text.firstByte, ms(timings.first_byte_ms)],
      ]} />
      <details><summary>${text.request}</summary>
        <${Code} label=${text.request} text=${`POST ${endpoint?.url ?? '…'}\n${lines(requestHeaders(delivery, attempt, endpoint))}`} />
      </details>
      <details open=${isLast}><summary>${text.response}</summary>
        ${status
          ? html`<${Code} label=${text.response} text=${`${status}\n${lines(attempt.response_headers)}`} />
            ${attempt.response_body
              ? html`<${Code} label=${text.responseBody} text=${pretty(attempt.response_body)} />`
              : html`<p class="hint">${text.noBody}</p>`}`
          : html`<p class="hint">${text.noAnswer}</p>`}
      </details>
    </section>`;
}

/** One delivery with all of its attempts. `endpoint`: null where it was deleted. */
function Details({ delivery, endpoint, close }) {
  const body = useLoad(() => envelopeOf(delivery.event_id), [delivery.event_id]);
  const { attempts, failed_reason: reason, next_attempt_at: next } = delivery;
  return html`
    <${Note} title=${delivery.event_type} close=${close}>
      <p><${Status} of=${delivery.status} /> ${reason && text.reason(reason)} ${next && text.nextAt(exact(next))}</p>
      ${delivery.status === 'held' && html`<p class="hint">${text.heldHint}</p>`}
      ${attempts.length === 0 && html`<p class="muted">${text.noAttempt}</p>`}
      ${[...attempts].reverse().map((attempt, n) => html`
        <${Attempt} key=${attempt.n} attempt=${attempt} delivery=${delivery} endpoint=${endpoint} isLast=${n === 0} />`)}
      <section class="stack tight"><h3>${text.body}</h3>
        <${Loaded} of=${body}>${(envelope) => html`<${Envelope} id=${delivery.event_id} envelope=${envelope} />`}<//>
      </section>
    <//>`;
}

const hint = (words) => html`<br /><span class="hint">${words}</span>`;

/** A table of deliveries. `first`: its first column's name and cell; `endpointOf` finds where one went. */
export function Deliveries({ label, first: [column, cell], deliveries, endpointOf, reload }) {
  const [seen, setSeen] = useState(null);
  const [sent, setSent] = useState('');
  const [run, busy, error] = useAct();
  // As it is now: attempts come while the dialog is open.
  const delivery = seen && deliveries.find(({ id }) => id === seen);
  const again = (row) => run(async () => {
    setSent('');
    await call('POST', `/events/${row.event_id}/replay`, { endpoint_id: row.endpoint_id });
    setSent(text.sentAgain);
    await reload();
  });
  const button = (word, about, act, disabled = false) => html`
    <button class="button quiet small" disabled=${disabled} aria-label="${word}: ${about}" onClick=${act}>${word}</button>`;
  const row = (one) => {
    const last = one.attempts.at(-1);
    const about = `${one.event_type}, ${exact(one.created_at)}`;
    const mayRepeat = mayWrite() && one.origin !== 'test' && endpointOf(one)?.status === 'active' && one.status !== 'pending';
    return {
      key: one.id,
      cells: [
        cell(one),
        html`<${Status} of=${one.status} />${one.failed_reason && hint(text.shortReason(one.failed_reason))}${one.attempts.length > 0
          && one.next_attempt_at && hint(text.next(timeOfDay(one.next_attempt_at)))}`,
        html`<${Time} of=${one.created_at} format=${exact} />${one.origin !== 'live' && hint(text.origin(one.origin))}`,
        html`${count(one.attempts.length)}${last && hint(text.last(answerOf(last)))}`,
        html`<div class="row-actions">
          ${button(text.details, about, () => setSeen(one.id))}
          ${mayRepeat && button(text.again, about, () => again(one), busy)}
        </div>`,
      ],
    };
  };
  return html`
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    <p class="hint" role="status">${sent}</p>
    <div class="deliveries"><${Table} label=${label} columns=${[column, ...Object.values(text.columns)]} rows=${deliveries.map(row)} /></div>
    ${delivery && html`<${Details} delivery=${delivery} endpoint=${endpointOf(delivery)} close=${() => setSeen(null)} />`}`;
}

const EventLink = ({ event_id: id, event_type: type }) => html`<a href=${to('events', id)}><${TypeName} of=${type} /></a>`;

const asked = () => Object.fromEntries(FILTERS.map((name) => [name, place.value.query.get(name) ?? '']));

/** The log of an endpoint, as the address narrows it. */
export function useLog(id) {
  const wanted = asked();
  const path = `/webhook_endpoints/${encodeURIComponent(id)}/deliveries`;
  const log = usePages((cursor) => call('GET', path + query({ ...wanted, cursor, limit: PAGE })), [id, ...Object.values(wanted)]);
  useDeliveries(log);
  return log;
}

export function Log({ endpoint, types, log }) {
  const wanted = asked();
  const filter = (name, values, label) => html`
    <${Choice} id=${name} label=${text.filters[name]} value=${wanted[name]}
      options=${[['', text.any], ...values.map((value) => [value, label(value)])]}
      onChange=${(value) => go(to('webhooks', endpoint.id, { ...wanted, [name]: value }), { replace: true })} />`;
  return html`
    <section class="stack tight" aria-labelledby="log">
      <h2 id="log">${text.log}</h2>
      <div class="filters">
        ${filter('status', STATUSES, text.status)}
        ${filter('event_type', types.map(({ name }) => name), (name) => name)}
        ${filter('origin', ORIGINS, text.origin)}
      </div>
      <${Loaded} of=${log}>${(deliveries) => deliveries.length
        ? html`<${Deliveries} label=${text.log} first=${[text.event, EventLink]} deliveries=${deliveries} endpointOf=${() => endpoint} reload=${log.reload} />
            <${More} next=${log.next} />`
        : html`<p class="empty panel">${FILTERS.some((name) => wanted[name]) ? text.noneSo : text.empty}</p>`}<//>
    </section>`;
}
