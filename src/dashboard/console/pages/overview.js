import { ask, call, isOwner, mayWrite, query } from '../api.js';
import { html } from '../html.js';
import { count, money, nameOf, percent, time } from '../format.js';
import { Bars } from '../graph.js';
import { useEvery, useLive } from '../live.js';
import { Badge, Heading, Loaded, Progress, Table, Time, useLoad } from '../parts.js';
import { place, to } from '../place.js';
import { words } from '../words.js';

const text = words.overview;
const SHOWN = 10;
const MOST = 100;
const QUIET_MS = 30_000;
const PERIODS = ['24h', '30d'];

/** So many failures in a row are worth a look, though nothing is suspended yet. */
const STREAK = 3;

const isToday = (iso) => iso && new Date(iso).toDateString() === new Date().toDateString();

/** Those that run, or would, and those that begin or have ended today. */
async function campaignsOfToday() {
  const of = (status, limit) => call('GET', `/campaigns${query({ status, limit })}`);
  const [running, paused, drafts, completed] = await Promise.all([of('running', SHOWN), of('paused', SHOWN), of('draft', MOST), of('completed', MOST)]);
  const begin = drafts.data.filter(({ armed, schedule }) => armed && isToday(schedule?.starts_at));
  const ended = completed.data.filter(({ completed_at: at }) => isToday(at));
  const all = [running, paused, drafts, completed];
  return { campaigns: [...running.data, ...paused.data, ...begin, ...ended].slice(0, 2 * SHOWN), isNone: all.every(({ data }) => !data.length) };
}

/** What of this workspace the server has given up on for a while. An overview does not fail for that. */
async function parkedHere() {
  if (!isOwner()) return [];
  try {
    const { parked } = await (await fetch('/readyz')).json();
    if (!parked.length) return [];
    const { id: workspace } = await ask('GET', `/t/${encodeURIComponent(place.value.slug)}`);
    return parked.filter(({ kind, id }) => kind === 'mailer' || id.includes(workspace));
  } catch {
    return [];
  }
}

async function load() {
  const list = (path, values) => call('GET', path + query(values));
  const [concurrency, calls, { campaigns, isNone }, anyCall, credits, endpoints, trunks, parked] = await Promise.all([
    call('GET', '/concurrency'),
    list('/sessions', { status: 'in_progress', limit: SHOWN }),
    campaignsOfToday(),
    list('/sessions', { limit: 1 }),
    call('GET', '/credits'),
    list('/webhook_endpoints', { limit: MOST }),
    list('/sip_trunks', { limit: MOST }),
    parkedHere(),
  ]);
  return {
    concurrency, credits, calls: calls.data, hasMoreCalls: calls.has_more, campaigns, isNew: !anyCall.data.length && isNone,
    endpoints: endpoints.data, trunks: trunks.data, parked,
  };
}

const isSuspended = ({ status }) => status === 'suspended';
// One that is disabled is so by somebody's own will.
const isFailing = ({ status, failure_streak: streak }) => status === 'active' && streak >= STREAK;

/** What needs somebody, the worst first: `{ said, page, id }`, the last two where a page of the console helps. */
function alarms({ credits, endpoints, trunks, parked }) {
  const { currency, balance_cents: balance, warning_threshold_cents: threshold } = credits;
  const all = [];
  if (credits.depleted_at) all.push({ said: text.alarm.depleted, page: 'credits' });
  else if (threshold !== null && balance < threshold) all.push({ said: text.alarm.low(money(balance, currency), money(threshold, currency)), page: 'credits' });
  const endpoint = ({ id }, said) => all.push({ said, page: 'webhooks', id });
  for (const one of endpoints.filter(isSuspended)) endpoint(one, text.alarm.suspended(one.url));
  for (const { id, name, state } of trunks) {
    const { refused, up } = state;
    const said = refused ? text.alarm.refused(name, `${refused.sip_code} ${refused.reason}`) : up === false && text.alarm.silent(name);
    if (said) all.push({ said, page: 'trunks', id });
  }
  for (const { kind, until } of parked) all.push({ said: text.alarm.parked(text.parked(kind), time(until)) });
  for (const one of endpoints.filter(isFailing)) endpoint(one, text.alarm.failing(one.url, one.failure_streak));
  return all;
}

const Alarms = ({ found }) => found.length
  ? html`
    <ul class="alarms">${found.slice(0, SHOWN).map(({ said, page, id }, n) => html`
      <li class="error block" key=${n}><span class="wrap">${said}</span>${page && html` <a href=${to(page, id)}>${text.look[page]}</a>`}</li>`)}</ul>
    ${found.length > SHOWN && html`<p class="error">${text.moreAlarms(found.length - SHOWN)}</p>`}`
  : html`<p class="muted">${text.noAlarms}</p>`;

export const whoOf = (session) => nameOf(session) || session.phone_number || session.email || words.calls.room;

const LiveCalls = ({ calls, hasMore }) => calls.length
  ? html`<${Table} label=${text.liveCalls} columns=${[words.calls.columns.who, words.calls.columns.status, words.calls.columns.began]}
      rows=${calls.map((session) => ({
        key: session.id,
        cells: [
          html`<a href=${to('calls', session.id)}>${whoOf(session)}</a>`, words.phase(session.phase), html`<${Time} of=${session.created_at} />`,
        ],
      }))} />
    ${hasMore && html`<p><a href=${to('calls', '', { status: 'in_progress' })}>${text.allLive}</a></p>`}`
  : html`<p class="muted">${text.noLive}</p>`;

export const doneOf = ({ completed, failed, skipped, canceled }) => completed + failed + skipped + canceled;

const Campaigns = ({ campaigns }) => campaigns.length
  ? html`<${Table} label=${text.campaigns} columns=${[words.campaigns.columns.name, words.campaigns.columns.status, words.campaigns.columns.progress]}
      rows=${campaigns.map(({ id, name, status, counts, armed, schedule, blocked_by: blocked }) => {
        const label = words.campaigns.progress(count(doneOf(counts)), count(counts.total));
        return {
          key: id,
          cells: [
            html`<a href=${to('campaigns', id)}>${name}</a>${blocked.map((by) => html`<p class="error" key=${by}>${words.campaign.blocked(by)}</p>`)}`,
            html`<${Badge} of=${status} />${armed && html` <span class="hint">${text.starts(time(schedule.starts_at))}</span>`}`,
            html`<${Progress} done=${doneOf(counts)} total=${counts.total} label=${label} /> ${label}`,
          ],
        };
      })} />`
  : html`<p class="muted">${text.noCampaigns}</p>`;

export const Figure = ({ title, value, hint, href }) => html`
  <section class="figure panel"><h2>${href ? html`<a href=${href}>${title}</a>` : title}</h2>
    <p class="value">${value}</p>${hint && html`<p class="hint">${hint}</p>`}
  </section>`;

function Figures({ data: { concurrency, credits, endpoints }, day }) {
  const ill = endpoints.filter((one) => isSuspended(one) || isFailing(one)).length;
  const health = html`<${Badge} of=${ill ? 'failed' : 'active'}>${ill ? text.unhealthy(ill, endpoints.length) : text.healthy(endpoints.length)}<//>`;
  return html`
    <div class="figures">
      <${Figure} title=${text.live} value=${count(concurrency.in_use)} hint=${text.liveOf(count(concurrency.in_use), count(concurrency.limit))}
        href=${to('calls', '', { status: 'in_progress' })} />
      <${Figure} title=${text.rate} value=${day ? percent(day.answer_rate) : words.none}
        hint=${day && (day.started ? text.rateOf(count(day.answered), count(day.started)) : text.noCalls)} />
      <${Figure} title=${text.credits} value=${money(credits.available_cents, credits.currency)}
        hint=${credits.held_cents ? text.held(money(credits.held_cents, credits.currency)) : ''} href=${to('credits')} />
      <${Figure} title=${text.webhooks} value=${endpoints.length ? health : words.none} hint=${endpoints.length ? '' : text.noWebhooks} href=${to('webhooks')} />
    </div>`;
}

const asHour = new Intl.DateTimeFormat(undefined, { hour: 'numeric', minute: '2-digit' });
// The API counts days in UTC.
const asDay = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', timeZone: 'UTC' });
const MARK = { '24h': (at) => asHour.format(new Date(at)), '30d': (at) => asDay.format(new Date(at)) };

function Period({ stats, currency }) {
  const { period, buckets } = stats;
  const mark = MARK[period];
  const { started, answered, rate, cost } = text.graphTable;
  const share = (of) => percent(of.started ? of.answered / of.started : null);
  return html`
    <section class="stack tight panel period" aria-labelledby="period-${period}">
      <h2 id="period-${period}">${text.periods[period]}</h2>
      <p class="hint">${text.sum(count(stats.started), count(stats.answered), percent(stats.answer_rate), money(stats.cost_cents, currency))}</p>
      <${Bars} marks=${buckets.map(({ at }) => mark(at))} series=${[
        { name: text.started, color: '--field-line', values: buckets.map((bucket) => bucket.started) },
        { name: text.answered, color: '--accent', values: buckets.map((bucket) => bucket.answered) },
      ]} />
      <details><summary>${text.figures}</summary>
        <${Table} label=${text.periods[period]} columns=${[text.buckets[period], started, answered, rate, cost]} rows=${[...buckets].reverse().map((bucket) => ({
          key: bucket.at,
          cells: [
            html`<time datetime=${bucket.at}>${mark(bucket.at)}</time>`, count(bucket.started), count(bucket.answered), share(bucket),
            money(bucket.cost_cents, currency),
          ],
        }))} />
      </details>
    </section>`;
}

export function Overview() {
  const loaded = useLoad(load, []);
  const stats = useLoad(() => Promise.all(PERIODS.map((period) => call('GET', `/sessions/stats?period=${period}`))), []);
  useLive(() => true, loaded.reload, 5_000);
  useLive(({ type }) => type.startsWith('session.'), stats.reload, 20_000);
  // A trunk fails, and hours pass, without an event.
  useEvery(loaded.reload, QUIET_MS);
  useEvery(stats.reload, QUIET_MS);
  return html`
    <${Heading} title=${text.title} />
    <${Loaded} of=${loaded}>${(data) => html`
      ${data.isNew && html`<p class="notice"><strong>${text.start}</strong> ${text.firstSteps}${' '}
        ${mayWrite() && html`<a href=${to('agents', 'new')}>${words.agents.fresh}</a> <a href=${to('campaigns', 'new')}>${words.campaigns.create}</a>${' '}`}
        <a href="/docs">${text.docs}</a></p>`}
      <section class="stack tight" aria-labelledby="alarms"><h2 id="alarms">${text.alarms}</h2><${Alarms} found=${alarms(data)} /></section>
      <${Figures} data=${data} day=${stats.data?.[0]} />
      <div class="periods"><${Loaded} of=${stats}>${(periods) => periods.map((one) => html`<${Period} key=${one.period} stats=${one} currency=${data.credits.currency} />`)}<//></div>
      <section class="stack tight"><h2>${text.liveCalls}</h2><${LiveCalls} calls=${data.calls} hasMore=${data.hasMoreCalls} /></section>
      <section class="stack tight"><h2>${text.campaigns}</h2><${Campaigns} campaigns=${data.campaigns} /></section>`}<//>`;
}
