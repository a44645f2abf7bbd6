import { ApiError } from '../../common.js';
import { call, mayWrite, query } from '../api.js';
import { Dates, between } from '../dates.js';
import { Field, FormDialog } from '../form.js';
import { count, money, time } from '../format.js';
import { html, useState } from '../html.js';
import { useEvery, useLive } from '../live.js';
import { Badge, Choice, Facts, Heading, Loaded, More, Note, Table, Time, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { Figure, whoOf } from './overview.js';

const text = words.credits;
const KINDS = ['topup', 'hold', 'charge', 'release', 'refund', 'refund_failed', 'adjustment'];
const STATUSES = ['pending', 'succeeded', 'failed', 'expired'];
const PAGE = 100;
const QUIET_MS = 30_000;
/** Entries that are read to learn what is set aside. Whatever began before them is one line. */
const MOST_READ = 500;
/** Of what is set aside: so many are shown, and so many of them are looked up one by one. */
const MOST_SHOWN = 50;
const MOST_ASKED = 10;

/** What a person types, in cents; in the browser's own way to write fractions, or the other one. */
function centsOf(typed, param) {
  const amount = /^(\d{1,12})(?:[.,](\d{1,2}))?$/.exec(typed.trim());
  if (!amount) throw new ApiError(text.badAmount, { param });
  return Number(amount[1]) * 100 + Number((amount[2] ?? '').padEnd(2, '0'));
}

/** The API tells its limits in cents, people think of none. */
async function inMoney(currency, request) {
  try {
    return await request;
  } catch (error) {
    const [, least, most] = (error.param?.endsWith('_cents') && /from (\d+) to (\d+)/.exec(error.message)) || [];
    throw most ? new ApiError(text.range(money(least, currency), money(most, currency)), error) : error;
  }
}

/** What an id of the ledger is about. The ledger says no kind: they are asked in turn. */
const SUBJECTS = [
  ['/sessions', (session) => ({ label: text.subject.call(whoOf(session)), href: to('calls', session.id) })],
  ['/sms_messages', ({ id, to_number: number }) => ({ label: text.subject.sms(number), href: to('messages', id, { kind: 'sms' }) })],
  ['/email_messages', ({ id, to: address }) => ({ label: text.subject.email(address), href: to('messages', id, { kind: 'email' }) })],
  ['/credits/topups', ({ amount_cents: cents, currency }) => ({ label: text.subject.topup(money(cents, currency)) })],
];

/** Those that were looked up: what an id is about does not change. */
const known = new Map();
const MOST_KNOWN = 1_000;

async function subjectOf(id) {
  if (known.has(id)) return known.get(id);
  const subject = await lookUp(id);
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(id, subject);
  return subject;
}

async function lookUp(id) {
  for (const [path, tell] of SUBJECTS) {
    try {
      return tell(await call('GET', `${path}/${encodeURIComponent(id)}`));
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
  return { label: text.subject.gone };
}

/**
 * What each call and message still holds, by entries that are read backwards, as far as they go; and whether that is all. Where nothing
 * is held, nothing older is.
 */
function holdsIn(entries) {
  const holds = new Map();
  for (const [n, entry] of entries.entries()) {
    if (entry.held_after_cents === 0) break;
    const before = entry.n === 1 ? 0 : entries[n + 1]?.held_after_cents;
    if (before === undefined) break;
    const change = entry.held_after_cents - before;
    if (change && entry.subject_id) holds.set(entry.subject_id, (holds.get(entry.subject_id) ?? 0) + change);
  }
  const open = [...holds].filter(([, cents]) => cents > 0).sort(([, one], [, two]) => two - one);
  const rest = entries[0].held_after_cents - open.reduce((sum, [, cents]) => sum + cents, 0);
  return { open, rest };
}

async function heldNow() {
  const entries = [];
  let [page, found] = [null, null];
  do {
    page = await call('GET', `/credits/ledger${query({ cursor: page?.next_cursor, limit: PAGE })}`);
    entries.push(...page.data);
    if (!entries.length) return { rows: [], rest: 0 };
    found = holdsIn(entries);
  } while (found.rest > 0 && page.has_more && entries.length < MOST_READ);
  const live = await call('GET', `/sessions${query({ status: 'in_progress', limit: PAGE })}`);
  const [, tell] = SUBJECTS[0];
  const subjects = new Map(live.data.map((session) => [session.id, tell(session)]));
  for (const [id] of found.open) if (known.has(id)) subjects.set(id, known.get(id));
  const others = found.open.filter(([id]) => !subjects.has(id)).slice(0, MOST_ASKED);
  await Promise.all(others.map(async ([id]) => subjects.set(id, await subjectOf(id))));
  const shown = found.open.filter(([id]) => subjects.has(id)).slice(0, MOST_SHOWN);
  const rest = entries[0].held_after_cents - shown.reduce((sum, [, cents]) => sum + cents, 0);
  return { rows: shown.map(([id, cents]) => ({ id, cents, ...subjects.get(id) })), rest };
}

async function load() {
  const credits = await call('GET', '/credits');
  return { credits, held: credits.held_cents > 0 ? await heldNow() : { rows: [], rest: 0 } };
}

/** Changes what is filtered by; all else in the address stays. */
const set = (changes) => go(to('credits', '', { ...Object.fromEntries(place.value.query), ...changes }), { replace: true });

function TopUp({ currency, close, done }) {
  const isTest = place.value.env === 'test';
  const act = async (values) => {
    const cents = centsOf(values.get('amount_cents'), 'amount_cents');
    // Where the payer comes back to. Without https the API takes no address, and has one of its own.
    const back = location.protocol === 'https:' ? location.origin + to('credits') : undefined;
    const topup = await inMoney(currency, call('POST', '/credits/topups', { amount_cents: cents, success_url: back, cancel_url: back }));
    if (topup.checkout_url) return location.assign(topup.checkout_url);
    return done(topup);
  };
  return html`
    <${FormDialog} title=${text.topUp.title} act=${act} submit=${isTest ? text.topUp.submitTest : text.topUp.submit} close=${close}>
      <${Field} name="amount_cents" label=${text.topUp.amount(currency)} hint=${isTest ? text.topUp.hintTest : text.topUp.hint}
        inputmode="decimal" autocomplete="off" required maxlength="20" data-message=${text.badAmount} autofocus />
    <//>`;
}

function Warning({ credits, close, reload }) {
  const { currency, warning_threshold_cents: threshold } = credits;
  const act = async (values) => {
    const typed = values.get('warning_threshold_cents').trim();
    const cents = typed ? centsOf(typed, 'warning_threshold_cents') : null;
    await inMoney(currency, call('PATCH', '/credits', { warning_threshold_cents: cents }));
    await reload();
  };
  return html`
    <${FormDialog} title=${text.warn.title} act=${act} submit=${words.save} close=${close}>
      <${Field} name="warning_threshold_cents" label=${text.warn.amount(currency)} hint=${text.warn.hint}
        inputmode="decimal" autocomplete="off" maxlength="20" autofocus defaultValue=${threshold === null ? '' : (threshold / 100).toFixed(2)} />
    <//>`;
}

const What = ({ label, href }) => (href ? html`<a class="wrap" href=${href}>${label}</a>` : html`<span class="wrap">${label}</span>`);

function Held({ held: { rows, rest }, currency }) {
  if (!rows.length && !rest) return html`<p class="muted">${text.noHeld}</p>`;
  const all = rows.map((row) => ({ key: row.id, cells: [html`<${What} ...${row} />`, money(row.cents, currency)] }));
  if (rest > 0) all.push({ key: 'rest', cells: [text.heldRest, money(rest, currency)] });
  return html`<${Table} label=${text.held} columns=${Object.values(text.heldColumns)} rows=${all} />`;
}

function Topups({ pages, status }) {
  const row = (topup) => ({
    key: topup.id,
    cells: [
      html`<${Time} of=${topup.created_at} />`, money(topup.amount_cents, topup.currency),
      html`<${Badge} of=${topup.status === 'succeeded' ? 'completed' : topup.status}>${text.topupStatus(topup.status)}<//>
        ${topup.refunded_cents > 0 && html` <span class="hint">${text.refunded(money(topup.refunded_cents, topup.currency))}</span>`}`,
      topup.checkout_url ? html`<a href=${topup.checkout_url} rel="noreferrer">${text.pay}</a>`
        : html`<span class="wrap">${topup.error ?? topup.processor_payment_intent_id ?? words.none}</span>`,
    ],
  });
  return html`
    <section class="stack tight" aria-labelledby="topups">
      <h2 id="topups">${text.topups}</h2>
      <div class="filters">
        <${Choice} id="topup" label=${text.topupFilter} value=${status} onChange=${(value) => set({ topup: value })}
          options=${[['', text.any], ...STATUSES.map((name) => [name, text.topupStatus(name)])]} />
      </div>
      <${Loaded} of=${pages}>${(topups) => topups.length
        ? html`<${Table} label=${text.topups} columns=${Object.values(text.topupColumns)} rows=${topups.map(row)} /><${More} next=${pages.next} />`
        : html`<p class="empty panel">${status ? text.noneSo : text.noTopups}</p>`}<//>
    </section>`;
}

function Entry({ entry, currency, close }) {
  const only = () => {
    close();
    set({ subject_id: entry.subject_id });
  };
  return html`
    <${Note} title=${text.entry(count(entry.n))} close=${close}>
      <${Facts} of=${[
        [text.facts.at, time(entry.created_at)], [text.facts.kind, text.kind(entry.kind)], [text.facts.amount, money(entry.amount_cents, currency)],
        [text.facts.moved, money(entry.moved_cents, currency)], [text.facts.balance, money(entry.balance_after_cents, currency)],
        [text.facts.held, money(entry.held_after_cents, currency)], [text.facts.note, entry.note],
        [text.facts.subject, entry.subject_id && html`<code>${entry.subject_id}</code>`],
        [text.facts.id, html`<code>${entry.id}</code>`], [text.facts.hash, html`<code>${entry.hash}</code>`],
      ]} />
      ${entry.subject_id && html`<p><button class="button quiet small" onClick=${only}>${text.same}</button></p>`}
    <//>`;
}

/** That the ledger shows one call's or message's entries only. */
function Only({ id }) {
  const loaded = useLoad(() => subjectOf(id), [id]);
  return html`
    <p class="notice"><${Loaded} of=${loaded}>${(subject) => html`${text.only('')}<${What} ...${subject} />`}<//>${' '}
      <button class="button quiet small" onClick=${() => set({ subject_id: '' })}>${text.all}</button></p>`;
}

function Ledger({ pages, kind, subject, currency }) {
  const [shown, setShown] = useState(null);
  const row = (entry) => ({
    key: entry.id,
    cells: [
      html`<${Time} of=${entry.created_at} />`, text.kind(entry.kind),
      entry.amount_cents ? money(entry.amount_cents, currency) : html`<span class="hint">${text.moved(money(entry.moved_cents, currency))}</span>`,
      money(entry.balance_after_cents, currency), money(entry.held_after_cents, currency),
      html`<button class="button quiet small" aria-label="${text.details}: ${text.entry(count(entry.n))}"
        onClick=${() => setShown(entry)}>${text.details}</button>`,
    ],
  });
  const isFiltered = kind || subject || Object.values(between()).some(Boolean);
  return html`
    <section class="stack tight" aria-labelledby="ledger">
      <h2 id="ledger">${text.ledger}</h2>
      <p class="muted">${text.ledgerHint}</p>
      <div class="filters">
        <${Choice} id="kind" label=${text.kindFilter} value=${kind} onChange=${(value) => set({ kind: value })}
          options=${[['', text.any], ...KINDS.map((name) => [name, text.kind(name)])]} />
        <${Dates} set=${set} />
      </div>
      ${subject && html`<${Only} id=${subject} />`}
      <${Loaded} of=${pages}>${(entries) => entries.length
        ? html`<${Table} label=${text.ledger} columns=${Object.values(text.columns)} rows=${entries.map(row)} /><${More} next=${pages.next} />`
        : html`<p class="empty panel">${isFiltered ? text.noEntries : text.noLedger}</p>`}<//>
      ${shown && html`<${Entry} entry=${shown} currency=${currency} close=${() => setShown(null)} />`}
    </section>`;
}

/** What came of a top-up that needs no payment page. */
function outcomeOf({ status, amount_cents: cents, currency, error }) {
  if (status === 'succeeded') return { said: text.topUp.done(money(cents, currency)) };
  if (status === 'pending') return { said: text.topUp.pending };
  return { said: text.topUp.failed(error ?? text.topUp.declined), isBad: true };
}

export function Credits() {
  const { query: asked } = place.value;
  const [kind, status, subject] = ['kind', 'topup', 'subject_id'].map((name) => asked.get(name) ?? '');
  const days = between();
  const loaded = useLoad(load, []);
  const ledger = usePages(
    (cursor) => call('GET', `/credits/ledger${query({ kind, subject_id: subject, ...days, cursor, limit: 50 })}`),
    [kind, subject, ...Object.values(days)],
  );
  const topups = usePages((cursor) => call('GET', `/credits/topups${query({ status, cursor, limit: 20 })}`), [status]);
  const [open, setOpen] = useState(null);
  const [outcome, setOutcome] = useState(null);
  const reload = () => Promise.all([loaded.reload(), ledger.reload(), topups.reload()]);
  // Whatever begins or ends sets credits aside, or frees them.
  useLive(({ type }) => /^(credits|session|campaign)\./.test(type), reload);
  // Messages of no campaign send no event.
  useEvery(reload, QUIET_MS);
  const close = () => setOpen(null);
  const done = (topup) => {
    setOutcome(outcomeOf(topup));
    reload();
  };
  return html`
    <${Heading} title=${text.title} />
    <${Loaded} of=${loaded}>${({ credits, held }) => {
      const { currency, balance_cents: balance, available_cents: available, held_cents: aside, warning_threshold_cents: threshold } = credits;
      return html`
        ${credits.depleted_at && html`<p class="error block" role="alert">${text.depleted(time(credits.depleted_at))}</p>`}
        ${!credits.depleted_at && threshold !== null && balance < threshold && html`<p class="error block">${text.low}</p>`}
        ${mayWrite() && html`
          <div class="stack tight">
            <div class="actions left">
              <button class="button" onClick=${() => setOpen('topup')}>${text.topUp.button}</button>
              <button class="button quiet" onClick=${() => setOpen('warning')}>${text.warn.button}</button>
            </div>
            <div role="status">${outcome && html`<p class=${outcome.isBad ? 'error block' : 'notice'}>${outcome.said}</p>`}</div>
          </div>`}
        <div class="figures">
          <${Figure} title=${text.figures.balance} value=${money(balance, currency)} />
          <${Figure} title=${text.figures.available} value=${money(available, currency)} />
          <${Figure} title=${text.figures.held} value=${money(aside, currency)} />
          <${Figure} title=${text.figures.threshold} value=${threshold === null ? text.noThreshold : money(threshold, currency)} />
        </div>
        <section class="stack tight"><h2>${text.held}</h2><${Held} held=${held} currency=${currency} /></section>
        <${Topups} pages=${topups} status=${status} />
        <${Ledger} pages=${ledger} kind=${kind} subject=${subject} currency=${currency} />
        ${open === 'topup' && html`<${TopUp} currency=${currency} close=${close} done=${done} />`}
        ${open === 'warning' && html`<${Warning} credits=${credits} close=${close} reload=${loaded.reload} />`}`;
    }}<//>`;
}
