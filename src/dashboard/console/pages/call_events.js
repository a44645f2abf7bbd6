// The events of a call, and what became of them on their way to webhook endpoints.
import { call, query } from '../api.js';
import { html, useState } from '../html.js';
import { count, timeOfDay } from '../format.js';
import { Badge, Loaded, Table, Time, useLoad } from '../parts.js';
import { to } from '../place.js';
import { words } from '../words.js';

const text = words.call;
const MOST = 50;

/** In the order in which they happened. */
export const eventsOf = (id) => call('GET', `/events${query({ subject_id: id, order: 'asc', limit: MOST })}`);

/** What the functions came to, by the call's last event; nothing while it lasts. */
export const invocationsOf = (events) => events?.findLast(({ data }) => data.function_invocations)?.data.function_invocations ?? [];

async function deliveriesOf(id) {
  const [deliveries, endpoints] = await Promise.all([call('GET', `/events/${id}/deliveries`), call('GET', '/webhook_endpoints?limit=100')]);
  // One that was deleted since is known by its id only.
  return { deliveries: deliveries.data, urls: new Map(endpoints.data.map(({ id: endpoint, url }) => [endpoint, url])) };
}

/** Badges have the colours of other words. */
const AS = { succeeded: 'completed', failed: 'failed', cancelled: 'canceled' };

function Deliveries({ id }) {
  const loaded = useLoad(() => deliveriesOf(id), [id]);
  const row = (urls) => ({ id: delivery, endpoint_id: endpoint, status, attempts, next_attempt_at: next }) => {
    const last = attempts.at(-1);
    return {
      key: delivery,
      cells: [
        html`<a href=${to('webhooks', endpoint)}>${urls.get(endpoint) ?? endpoint}</a>`,
        html`<${Badge} of=${AS[status] ?? status}>${text.delivery(status)}<//>`,
        count(attempts.length), last ? (last.status || last.error_code || text.noAnswer) : words.none, html`<${Time} of=${next} />`,
      ],
    };
  };
  return html`
    <${Loaded} of=${loaded}>${({ deliveries, urls }) => deliveries.length
      ? html`<${Table} label=${text.deliveries} columns=${Object.values(text.deliveryTable)} rows=${deliveries.map(row(urls))} />`
      : html`<p class="muted">${text.noDeliveries}</p>`}<//>
    <p><a href=${to('events', id)}>${text.openEvent}</a></p>`;
}

/** Its deliveries are asked for when it is unfolded. */
function Event({ event: { id, type, created_at: at } }) {
  const [isOpen, setIsOpen] = useState(false);
  return html`
    <li><details onToggle=${({ target }) => setIsOpen(target.open)}>
      <summary><${Time} of=${at} format=${timeOfDay} /> <code>${type}</code></summary>
      ${isOpen && html`<${Deliveries} id=${id} />`}
    </details></li>`;
}

export const Events = ({ of }) => html`
  <section class="stack tight" aria-labelledby="events"><h2 id="events">${text.events}</h2>
    <${Loaded} of=${of}>${({ data, has_more: hasMore }) => data.length
      ? html`
        <ul class="call-events panel">${data.map((event) => html`<${Event} key=${event.id} event=${event} />`)}</ul>
        ${hasMore && html`<p class="hint">${text.mostEvents(MOST)}</p>`}`
      : html`<p class="muted">${text.noEvents}</p>`}<//>
  </section>`;
