// One person, by number or address: what is held about them, and its erasure as far as the API can erase.
import { ApiError } from '../../common.js';
import { call, mayWrite, query } from '../api.js';
import { Check, Field, Form, FormDialog } from '../form.js';
import { count, nameOf, time } from '../format.js';
import { html, useEffect, useRef, useState } from '../html.js';
import { Loaded, Progress, Table, useLoad } from '../parts.js';
import { place, to } from '../place.js';
import { words } from '../words.js';
import { numberOf } from './calls.js';
import { whoOf } from './overview.js';

const text = words.compliance.person;
const PAGE = 100;
/** Of each kind so much is found, and erased, at once. Contacts come in one page: those that are erased make room for the next. */
const MOST = 1_000;
/** Of what is found so much is listed. */
const LISTED = 20;
/** How long to wait, and how often, when the server asks to go slower. */
const PAUSE_MS = 1_000;
const MOST_PAUSES = 30;

/** `{ number }` or `{ email }`: numbers are compared without what people put between the digits. */
function whomOf(typed) {
  const whom = typed.trim();
  if (whom.includes('@')) return { email: whom.toLowerCase() };
  const number = numberOf(whom);
  if (!/^\+\d{2,15}$/.test(number)) throw new ApiError(text.badNumber, { param: 'person' });
  return { number };
}

/** Not handed over yet: it is canceled first. */
const isOpen = ({ status }) => ['scheduled', 'queued', 'deferred'].includes(status);

/** Where each kind is found, what is told of one, and how one is erased, in this order; without `erase` it stays. */
const KINDS = {
  sms: {
    paths: ({ number }) => number && [{ to_number: number, direction: 'outbound' }, { from_number: number, direction: 'inbound' }]
      .map((side) => `/sms_messages${query(side)}`),
    tell: (sms) => ({ label: `${sms.body.slice(0, 60)}, ${time(sms.created_at)}`, href: to('messages', sms.id, { kind: 'sms' }) }),
    erase: (sms) => ({ path: `/sms_messages/${sms.id}`, isOpen: isOpen(sms) }),
  },
  emails: {
    paths: ({ email }) => email && [`/email_messages${query({ to: email })}`],
    tell: (mail) => ({ label: `${mail.subject.slice(0, 60)}, ${time(mail.created_at)}`, href: to('messages', mail.id, { kind: 'email' }) }),
    erase: (mail) => ({ path: `/email_messages/${mail.id}`, isOpen: isOpen(mail) }),
  },
  contacts: {
    paths: ({ number, email }) => [`/contacts${query({ phone_number: number, email })}`],
    tell: (contact) => ({ label: `${nameOf(contact) || text.contactOf}, ${words.status(contact.status)}`, href: to('campaigns', contact.campaign_id) }),
    erase: (contact) => ({ path: `/campaigns/${contact.campaign_id}/contacts/${contact.id}` }),
  },
  sessions: {
    paths: ({ number, email }) => [`/sessions${query({ phone_number: number, email })}`],
    tell: (session) => ({ label: `${whoOf(session)}, ${time(session.created_at)}`, href: to('calls', session.id) }),
    erase: (session) => ({ path: session.room_id ? `/rooms/${session.room_id}` : `/sessions/${session.id}` }),
  },
  dnc: {
    paths: ({ number, email }) => [`/dnc${query({ phone_number: number, email })}`],
    tell: (entry) => ({ label: `${entry.channels.join(', ')}, ${time(entry.created_at)}` }),
  },
};
const ERASED = Object.keys(KINDS).filter((kind) => KINDS[kind].erase);

/** Asks, and asks again where the server wants it slower. */
async function patiently(method, path) {
  for (let pauses = 0; ; pauses += 1) {
    try {
      return await call(method, path);
    } catch (error) {
      if (error.status !== 429 || pauses >= MOST_PAUSES) throw error;
      await new Promise((done) => { setTimeout(done, PAUSE_MS); });
    }
  }
}

async function allOf(path) {
  const rows = [];
  let page = null;
  do {
    page = await patiently('GET', `${path}&${new URLSearchParams({ limit: PAGE, ...(page && { cursor: page.next_cursor }) })}`);
    rows.push(...page.data);
  } while (page.next_cursor && rows.length < MOST);
  return { rows, hasMore: page.has_more };
}

/** One list of them all; one that cannot be looked up keeps nobody from the others. */
async function lookUp(paths) {
  try {
    const lists = [];
    for (const path of paths) lists.push(await allOf(path));
    return { rows: lists.flatMap(({ rows }) => rows), hasMore: lists.some(({ hasMore }) => hasMore) };
  } catch (error) {
    return { rows: [], hasMore: false, error };
  }
}

/** By kind; what an address or a number does not lead to is left out. */
async function search(whom) {
  const asked = Object.entries(KINDS).map(([kind, { paths }]) => [kind, paths(whom)]).filter(([, paths]) => paths);
  return Object.fromEntries(await Promise.all(asked.map(async ([kind, paths]) => [kind, await lookUp(paths)])));
}

const stepsOf = (found) => ERASED.filter((kind) => found[kind])
  .flatMap((kind) => found[kind].rows.map((row) => ({ ...KINDS[kind].erase(row), kind })));

/** Erases one thing; what is gone already is erased too. */
async function erase({ path, isOpen: isToCancel }) {
  try {
    // If it has left meanwhile, it can be erased all the same.
    if (isToCancel) await patiently('POST', `${path}/cancel`).catch((error) => { if (error.status !== 409) throw error; });
    return await patiently('DELETE', path);
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** `3 calls, 1 SMS`: as many as there are of each kind. */
function amountsOf(steps) {
  const amount = (kind) => [kind, steps.filter((step) => step.kind === kind).length];
  return ERASED.map(amount).filter(([, many]) => many).map(([kind, many]) => text.amount[kind](many)).join(', ');
}

/** What went wrong, each reason once, with how often it did. */
function reasonsOf(failures) {
  const reasons = new Map();
  for (const { kind, message } of failures) {
    const reason = `${text.kind[kind]}: ${message}`;
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return [...reasons].map(([reason, times]) => text.failure(count(times), reason));
}

/**
 * Erases step by step. `told({ done, total })` hears of each; answers what was erased and what was not, or nothing if `isOver()`: whoever
 * has left the page sees no end of it.
 */
async function eraseAll(steps, told, isOver) {
  const [erased, failures] = [[], []];
  for (const [n, step] of steps.entries()) {
    if (isOver()) return null;
    told({ done: n, total: steps.length });
    try {
      await erase(step);
      erased.push(step);
    } catch (error) {
      failures.push({ ...step, message: error.message });
    }
  }
  return { erased, failures };
}

function Found({ kind, of: { rows, hasMore, error } }) {
  if (error) return html`<span class="error">${text.failed} ${error.message}</span>`;
  const shown = rows.slice(0, LISTED).map((one) => ({ id: one.id, ...KINDS[kind].tell(one) }));
  return html`
    <span>${hasMore ? text.atLeast(count(rows.length)) : count(rows.length)}</span>
    ${rows.length > 0 && html`
      <details><summary>${text.show}<span class="visually-hidden">: ${text.kind[kind]}</span></summary>
        <ul class="plain-list">
          ${shown.map(({ id, label, href }) => html`<li key=${id} class="wrap">${href ? html`<a href=${href}>${label}</a>` : label}</li>`)}
          ${rows.length > LISTED && html`<li>${text.more(count(rows.length - LISTED))}</li>`}
        </ul>
      </details>`}`;
}

const recorded = ({ rows }) => rows.filter(({ recording_id: id }) => id).length;

function Holdings({ found }) {
  const row = ([kind, of]) => ({
    key: kind,
    cells: [
      html`${text.kind[kind]}${kind === 'sessions' && recorded(of) > 0 && html` <span class="hint">${text.withRecording(recorded(of))}</span>`}`,
      html`<${Found} kind=${kind} of=${of} />`, text.fate[kind],
    ],
  });
  return html`<${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${Object.entries(found).map(row)} />`;
}

function AskToErase({ who, whom, steps, isListed, close, begin }) {
  const act = async (values) => {
    // First: nobody is called while it lasts, nor by what cannot be erased.
    if (values.has('dnc')) await call('POST', '/dnc', whom.email ? { email: whom.email } : { phone_number: whom.number });
    begin(values.has('dnc'));
  };
  return html`
    <${FormDialog} title=${text.confirm.title(who)} act=${act} submit=${text.confirm.yes} close=${close} isDanger>
      <p>${text.confirm.text(amountsOf(steps))}</p>
      ${!isListed && html`<${Check} name="dnc" label=${text.confirm.dnc} hint=${text.confirm.dncHint} defaultChecked />`}
    <//>`;
}

/** Why not all of it goes: what applies to this person. */
function staysOf({ sessions, contacts, sms, emails }, isListed) {
  const applies = {
    calls: sessions.rows.length, contacts: contacts.rows.length, messages: sms?.rows.length || emails?.rows.length, events: true,
    answers: true, receivers: true, dnc: isListed, ledger: true,
  };
  return Object.keys(applies).filter((name) => applies[name]).map((name) => text.staysOf[name]);
}

function Outcome({ erased, failures, isListed, hasMore, stays }) {
  const heading = useRef(null);
  useEffect(() => heading.current.focus(), []);
  const all = reasonsOf(failures);
  return html`
    <section class="stack tight panel tools outcome" aria-labelledby="outcome">
      <h3 id="outcome" ref=${heading} tabindex="-1">${text.done}</h3>
      <p>${text.erased(amountsOf(erased))} ${isListed && text.listed}</p>
      ${hasMore && html`<p class="notice">${text.again}</p>`}
      ${all.length > 0 && html`<h4>${text.failures}</h4><ul class="bullets">${all.map((reason) => html`<li key=${reason} class="wrap">${reason}</li>`)}</ul>`}
      <h4>${text.stays}</h4>
      <ul class="bullets">${stays.map((what) => html`<li key=${what}>${what}</li>`)}</ul>
    </section>`;
}

/** What is held about one person. */
function Held({ whom, who }) {
  const loaded = useLoad(() => search(whom), [who]);
  const [isAsked, setIsAsked] = useState(false);
  const [progress, setProgress] = useState(null);
  const [outcome, setOutcome] = useState(null);
  const isOver = useRef(false);
  useEffect(() => () => { isOver.current = true; }, []);
  return html`
    <div class="stack tight"><h3><bdi>${text.found(who)}</bdi></h3><p class="hint">${whom.email ? text.onlyByNumber : text.onlyByAddress}</p></div>
    <${Loaded} of=${loaded}>${(found) => {
      const steps = stepsOf(found);
      const isListed = found.dnc.rows.length > 0;
      const begin = async (isNew) => {
        setOutcome(null);
        const done = await eraseAll(steps, setProgress, () => isOver.current);
        if (!done) return;
        setProgress(null);
        await loaded.reload();
        setOutcome({
          ...done, isListed: isListed || isNew, hasMore: ERASED.some((kind) => found[kind]?.hasMore),
          failures: [...done.failures, ...Object.entries(found).filter(([kind, { error }]) => error && ERASED.includes(kind)).map(([kind, { error }]) => ({ kind, message: `${text.failed} ${error.message}` }))],
          stays: staysOf(found, isListed || isNew),
        });
      };
      const isEmpty = Object.values(found).every(({ rows, error }) => !rows.length && !error);
      const label = progress && text.progress(count(progress.done), count(progress.total));
      return html`
        ${isEmpty ? html`<p class="empty panel">${text.nothing(who)}</p>` : html`<${Holdings} found=${found} />`}
        ${progress && html`<div class="whole"><${Progress} ...${progress} label=${label} /><span>${label}</span></div>`}
        ${mayWrite() && !progress && steps.length > 0 && html`
          <div class="actions left"><button class="button danger" onClick=${() => setIsAsked(true)}>${text.erase}</button></div>`}
        ${mayWrite() && !steps.length && !isEmpty && !outcome && html`<p class="muted">${text.noneToErase}</p>`}
        ${outcome && html`<${Outcome} ...${outcome} />`}
        ${isAsked && html`<${AskToErase} ...${{ who, whom, steps, isListed, begin }} close=${() => setIsAsked(false)} />`}`;
    }}<//>`;
}

/** `asked`: what the address says; `find` writes it there. */
export function Person({ asked, find }) {
  const act = async (values) => {
    whomOf(values.get('person'));
    find(values.get('person').trim());
  };
  let whom = null;
  try {
    whom = asked && whomOf(asked);
  } catch {
    // Somebody has changed the address by hand: the field says what is expected when it is sent.
  }
  const who = whom && (whom.email ?? whom.number);
  return html`
    <section class="stack" aria-labelledby="person">
      <div class="stack tight"><h2 id="person">${text.title}</h2><p class="muted">${text.env(place.value.env)}</p></div>
      <${Form} act=${act} submit=${text.button}>
        <${Field} name="person" label=${text.label} hint=${text.hint} defaultValue=${asked}
          required maxlength="254" autocomplete="off" data-message=${text.badNumber} />
      <//>
      ${who ? html`<${Held} key=${who} whom=${whom} who=${who} />` : html`<p class="muted">${text.empty}</p>`}
    </section>`;
}
