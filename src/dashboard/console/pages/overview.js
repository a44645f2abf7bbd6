import { call, query } from '../api.js';
import { html } from '../html.js';
import { count, money, nameOf } from '../format.js';
import { useLive } from '../live.js';
import { Badge, Heading, Loaded, Progress, Table, Time, useLoad } from '../parts.js';
import { to } from '../place.js';
import { words } from '../words.js';

const text = words.overview;
const SHOWN = 10;
const MOST = 100;

/** So many failures in a row are worth a look, though nothing is suspended yet. */
const STREAK = 3;

async function load() {
  const list = (path, values) => call('GET', path + query(values));
  const [concurrency, calls, campaigns, any, credits, endpoints, trunks] = await Promise.all([
    call('GET', '/concurrency'),
    list('/sessions', { status: 'in_progress', limit: SHOWN }),
    list('/campaigns', { status: 'running', limit: SHOWN }),
    list('/sessions', { limit: 1 }),
    call('GET', '/credits'),
    list('/webhook_endpoints', { limit: MOST }),
    list('/sip_trunks', { limit: MOST }),
  ]);
  return {
    concurrency, credits, calls: calls.data, campaigns: campaigns.data, isNew: !any.data.length && !campaigns.data.length,
    endpoints: endpoints.data, trunks: trunks.data,
  };
}

// One that is disabled is so by somebody's own will.
const isIll = ({ status, failure_streak: streak }) => status === 'suspended' || (status === 'active' && streak >= STREAK);

function alarms({ credits, endpoints, trunks }) {
  const { currency, balance_cents: balance, warning_threshold_cents: threshold } = credits;
  const all = [];
  if (credits.depleted_at) all.push(text.alarm.depleted);
  else if (threshold !== null && balance < threshold) all.push(text.alarm.low(money(balance, currency), money(threshold, currency)));
  for (const { url, status, failure_streak: streak } of endpoints.filter(isIll)) {
    all.push(status === 'suspended' ? text.alarm.suspended(url) : text.alarm.failing(url, streak));
  }
  for (const { name, state } of trunks) {
    if (state.refused) all.push(text.alarm.refused(name, `${state.refused.sip_code} ${state.refused.reason}`));
    else if (state.up === false) all.push(text.alarm.silent(name));
  }
  return all;
}

export const whoOf = (session) => nameOf(session) || session.phone_number || session.email || words.calls.room;

const LiveCalls = ({ calls }) => calls.length
  ? html`<${Table} label=${text.liveCalls} columns=${[words.calls.columns.who, words.calls.columns.status, words.calls.columns.began]}
      rows=${calls.map((session) => ({
        key: session.id,
        cells: [
          html`<a href=${to('calls', session.id)}>${whoOf(session)}</a>`, words.phase(session.phase), html`<${Time} of=${session.created_at} />`,
        ],
      }))} />`
  : html`<p class="muted">${text.noLive}</p>`;

export const doneOf = ({ completed, failed, skipped, canceled }) => completed + failed + skipped + canceled;

const Campaigns = ({ campaigns }) => campaigns.length
  ? html`<${Table} label=${text.campaigns} columns=${[words.campaigns.columns.name, words.campaigns.columns.progress]}
      rows=${campaigns.map(({ id, name, counts, blocked_by: blocked }) => {
        const label = words.campaigns.progress(count(doneOf(counts)), count(counts.total));
        return {
          key: id,
          cells: [
            html`<a href=${to('campaigns', id)}>${name}</a>${blocked.map((by) => html`<p class="error">${words.campaign.blocked(by)}</p>`)}`,
            html`<${Progress} done=${doneOf(counts)} total=${counts.total} label=${label} /> ${label}`,
          ],
        };
      })} />`
  : html`<p class="muted">${text.noCampaigns}</p>`;

const Figure = ({ title, value, hint, href }) => html`
  <section class="figure panel"><h2>${href ? html`<a href=${href}>${title}</a>` : title}</h2><p class="value">${value}</p>${hint && html`<p class="hint">${hint}</p>`}</section>`;

export function Overview() {
  const loaded = useLoad(load, []);
  useLive(() => true, loaded.reload, 5_000);
  return html`
    <${Heading} title=${text.title} />
    <${Loaded} of=${loaded}>${(data) => {
      const { concurrency, credits, endpoints } = data;
      const ill = endpoints.filter(isIll).length;
      const found = alarms(data);
      return html`
        ${data.isNew && html`<p class="notice"><strong>${text.start}</strong> ${text.firstSteps} <a href="/docs">${text.docs}</a></p>`}
        <section class="stack tight" aria-labelledby="alarms">
          <h2 id="alarms">${text.alarms}</h2>
          ${found.length ? html`<ul class="alarms">${found.map((alarm) => html`<li class="error block" key=${alarm}>${alarm}</li>`)}</ul>` : html`<p class="muted">${text.noAlarms}</p>`}
        </section>
        <div class="figures">
          <${Figure} title=${text.live} value=${count(concurrency.in_use)} hint=${text.liveOf(count(concurrency.in_use), count(concurrency.limit))} href=${to('calls', '', { status: 'in_progress' })} />
          <${Figure} title=${text.credits} value=${money(credits.available_cents, credits.currency)} hint=${credits.held_cents ? text.held(money(credits.held_cents, credits.currency)) : ''} />
          <${Figure} title=${text.webhooks} value=${endpoints.length ? html`<${Badge} of=${ill ? 'failed' : 'active'}>${ill ? text.unhealthy(ill, endpoints.length) : text.healthy(endpoints.length)}<//>` : words.none} hint=${endpoints.length ? '' : text.noWebhooks} />
        </div>
        <section class="stack tight"><h2>${text.liveCalls}</h2><${LiveCalls} calls=${data.calls} /></section>
        <section class="stack tight"><h2>${text.campaigns}</h2><${Campaigns} campaigns=${data.campaigns} /></section>`;
    }}<//>`;
}
