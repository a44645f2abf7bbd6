import { apiUrl, call, currency, mayWrite, query } from '../api.js';
import { html, useState } from '../html.js';
import { count, decimal, money, nameOf, percent, time } from '../format.js';
import { useLive } from '../live.js';
import { Badge, Choice, Confirm, Facts, Heading, Loaded, More, Note, Progress, Table, Time, useAct, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { doneOf } from './overview.js';

const text = words.campaign;
const CONTACT_STATUSES = ['pending', 'waiting', 'dispatched', 'completed', 'failed', 'skipped', 'canceled'];
/** Those that may be called once more. */
const OVER = ['failed', 'skipped', 'canceled'];
/** Its events tell of a campaign; a session's tell of one of its calls. */
const concerns = (id) => ({ data }) => data.campaign_id === id || data.id === id;

async function load(id) {
  const [campaign, stats, money] = await Promise.all([call('GET', `/campaigns/${id}`), call('GET', `/campaigns/${id}/stats`), currency()]);
  return { campaign, stats, money };
}

function stateOf({ status, pause_reason: paused, completed_reason: completed, armed, schedule, next_open_at: opens, cancel_requested_at: canceling }) {
  return [
    canceling && status !== 'completed' && text.canceling,
    status === 'paused' && paused && text.pausedFor(paused),
    completed && text.completedFor(completed),
    armed && schedule?.starts_at && text.armed(time(schedule.starts_at)),
    opens && text.opens(time(opens)),
  ].filter(Boolean);
}

/** What may be done with a campaign in its state: `[word, act, question]`. */
function Actions({ campaign, reload }) {
  const [run, busy, error] = useAct();
  const [asks, setAsks] = useState(null);
  const path = `/campaigns/${campaign.id}`;
  const post = (verb) => async () => { await call('POST', `${path}/${verb}`, undefined); await reload(); };
  const duplicate = async () => {
    const copy = await call('POST', `${path}/duplicate`, {});
    go(to('campaigns', copy.id));
  };
  const { status, name, counts } = campaign;
  const button = (word, act, kind = 'quiet') => html`<button class="button ${kind}" disabled=${busy} onClick=${act}>${word}</button>`;
  const start = { ...text.confirmStart, title: text.confirmStart.title(name), text: text.confirmStart.text(count(counts.total), place.value.env) };
  const cancel = { ...text.confirmCancel, title: text.confirmCancel.title(name) };
  return html`
    <div class="actions left">
      ${status === 'draft' && !campaign.armed && button(text.start, () => setAsks({ asks: start, act: post('start'), isDanger: false }), '')}
      ${status === 'running' && button(text.pause, () => run(post('pause')), '')}
      ${status === 'paused' && button(text.resume, () => run(post('resume')), '')}
      ${button(text.duplicate, () => run(duplicate))}
      ${status !== 'completed' && status !== 'draft' && !campaign.cancel_requested_at
        && button(text.cancel, () => setAsks({ asks: cancel, act: post('cancel') }), 'quiet danger')}
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${asks && html`<${Confirm} ...${asks} close=${() => setAsks(null)} />`}`;
}

/** The last hours as bars; the same figures stand in a table for those who do not see them. */
function Hours({ hours }) {
  if (!hours.length) return html`<p class="muted">${text.noHours}</p>`;
  const most = Math.max(...hours.map(({ started }) => started), 1);
  const height = (value) => (value / most) * 100;
  // A day at least, so that the first hour is no wall.
  const width = Math.max(hours.length, 24) * 10;
  return html`
    <svg class="bars" viewBox="0 0 ${width} 100" preserveAspectRatio="none" aria-hidden="true">
      ${hours.map(({ hour, started, answered }, n) => html`
        <g key=${hour}>
          <rect class="started" x=${n * 10 + 1} y=${100 - height(started)} width="8" height=${height(started)} />
          <rect class="answered" x=${n * 10 + 1} y=${100 - height(answered)} width="8" height=${height(answered)} />
        </g>`)}
    </svg>
    <details><summary>${text.figures}</summary>
      <${Table} label=${text.hours} columns=${Object.values(text.hoursTable)} rows=${[...hours].reverse().map((row) => ({
        key: row.hour,
        cells: [html`<${Time} of=${row.hour} />`, count(row.started), count(row.answered), percent(row.answer_rate)],
      }))} />
    </details>`;
}

const isClosed = (rules) => rules.some(({ rule, verdict }) => rule === 'hours' && verdict !== 'yes');

function Eligibility({ contact, close }) {
  const loaded = useLoad(() => call('GET', `/campaigns/${contact.campaign_id}/contacts/${contact.id}/eligibility`), [contact.id]);
  return html`
    <${Note} title=${text.whyOf(nameOf(contact) || addressOf(contact))} close=${close}>
      <${Loaded} of=${loaded}>${({ eligible, rules, zones, next_opening_at: opens }) => html`
        <p><strong>${eligible ? text.eligible : text.notEligible}</strong>${opens && isClosed(rules) && html` ${text.opens(time(opens))}`}</p>
        <ul class="rules">${rules.map(({ rule, verdict, until, skip_reason: reason }) => html`
          <li key=${rule}><span>${text.rule(rule)}</span>
            <span>${text.verdict[verdict] ?? words.plain(verdict)}${until && `, ${text.until(time(until))}`}${reason && `: ${text.skipped(reason)}`}</span></li>`)}</ul>
        ${zones.map(({ timezone, local_time: local }) => html`<p class="hint" key=${timezone}>${text.localTime(timezone, local.slice(0, 16).replace('T', ' '))}</p>`)}`}<//>
    <//>`;
}

const addressOf = ({ phone_number: number, email }) => number || email || words.none;

function Contacts({ campaign }) {
  const status = place.value.query.get('status') ?? '';
  const path = `/campaigns/${campaign.id}/contacts`;
  const pages = usePages((cursor) => call('GET', path + query({ status, cursor, limit: 50 })), [campaign.id, status]);
  const [asked, setAsked] = useState(null);
  const [run, busy, error] = useAct();
  useLive(concerns(campaign.id), pages.reload);
  const retry = (contact) => run(async () => { await call('POST', `${path}/${contact.id}/retry`, undefined); await pages.reload(); });
  const row = (contact) => {
    const { id, status: its, attempts, wait_reason: waits, skip_reason: skipped, next_attempt_at: next, last_session_id: last } = contact;
    const name = nameOf(contact) || addressOf(contact);
    return {
      key: id,
      cells: [
        nameOf(contact) || html`<span class="muted">${text.nameless}</span>`, html`<span class="wrap">${addressOf(contact)}</span>`,
        html`<${Badge} of=${its} />${waits && html` <span class="hint">${text.waits(waits)}</span>`}${skipped && html` <span class="hint">${text.skipped(skipped)}</span>`}`,
        html`${count(attempts)}${last && html` <a href=${to('calls', last)}>${text.lastCall}</a>`}`, html`<${Time} of=${next} />`,
        html`<button class="button quiet small" aria-label="${text.why} ${name}" onClick=${() => setAsked(contact)}>${text.why}</button>
          ${OVER.includes(its) && mayWrite() && html`<button class="button quiet small" disabled=${busy} aria-label="${text.retry}: ${name}" onClick=${() => retry(contact)}>${text.retry}</button>`}`,
      ],
    };
  };
  return html`
    <section class="stack tight" aria-labelledby="contacts">
      <h2 id="contacts">${text.contacts}</h2>
      <div class="filters">
        <${Choice} id="status" label=${words.campaigns.filter} value=${status} options=${[['', words.campaigns.any], ...CONTACT_STATUSES.map((name) => [name, words.status(name)])]}
          onChange=${(value) => go(to('campaigns', campaign.id, { status: value }), { replace: true })} />
      </div>
      ${error && html`<p class="error block" role="alert">${error.message}</p>`}
      <${Loaded} of=${pages}>${(contacts) => contacts.length
        ? html`<${Table} label=${text.contacts} columns=${Object.values(text.columns)} rows=${contacts.map(row)} /><${More} next=${pages.next} />`
        : html`<p class="empty panel">${status ? text.noneSo : text.noContacts}</p>`}<//>
      ${asked && html`<${Eligibility} contact=${asked} close=${() => setAsked(null)} />`}
    </section>`;
}

function Counts({ counts }) {
  const label = words.campaigns.progress(count(doneOf(counts)), count(counts.total));
  return html`
    <div class="whole"><${Progress} done=${doneOf(counts)} total=${counts.total} label=${label} /><span>${label}</span></div>
    <${Facts} of=${CONTACT_STATUSES.map((name) => [words.status(name), count(counts[name])])} />`;
}

export function Campaign({ id }) {
  const loaded = useLoad(() => load(id), [id]);
  useLive(concerns(id), loaded.reload);
  return html`
    <${Loaded} of=${loaded}>${({ campaign, stats, money: inMoney }) => html`
      <${Heading} title=${campaign.name}><${Badge} of=${campaign.status} /><//>
      ${stateOf(campaign).map((line) => html`<p class="notice" key=${line}>${line}</p>`)}
      ${campaign.blocked_by.map((by) => html`<p class="error block" role="alert" key=${by}>${text.blocked(by)}</p>`)}
      ${mayWrite() && html`<${Actions} campaign=${campaign} reload=${loaded.reload} />`}
      <${Counts} counts=${campaign.counts} />
      <${Facts} of=${[
        [text.facts.rate, text.rateOf(decimal(stats.attempts_per_second), campaign.pacing?.calls_per_second)],
        [text.facts.slots, text.slotsOf(count(stats.slots.in_use), count(stats.slots.limit))],
        [text.facts.limiting, campaign.status === 'running' ? stats.limiting_factor ? text.limiting(stats.limiting_factor) : text.notLimited : null],
        [text.facts.answered, percent(stats.answer_rate)],
        [text.facts.cost, money(stats.cost_cents, inMoney)],
        [text.facts.finish, stats.expected_finish_at && time(stats.expected_finish_at)],
      ]} />
      <section class="stack tight"><h2>${text.hours}</h2><${Hours} hours=${stats.hours} /></section>
      ${campaign.counts.total > 0 && html`<p><a href=${apiUrl(`/campaigns/${id}/report.csv`)} download>${text.report}</a></p>`}
      <${Contacts} campaign=${campaign} />`}<//>`;
}
