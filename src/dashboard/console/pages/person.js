// One person, by number or address: what is held about them, the file to send or to print, and erasing it.
import { ApiError } from '../../common.js';
import { apiUrl, call, mayWrite, query } from '../api.js';
import { Field, Form } from '../form.js';
import { count, nameOf, time } from '../format.js';
import { html } from '../html.js';
import { Loaded, Table, useLoad } from '../parts.js';
import { place, to } from '../place.js';
import { words } from '../words.js';
import { numberOf } from './calls.js';
import { ERASED, Erase } from './erasure.js';
import { whoOf } from './overview.js';

const text = words.compliance.person;
const PAGE = 100;
/** Of each kind so much is found; what is erased is all there is. */
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

/** Where each kind is found, and what is told of one. */
const KINDS = {
  sms: {
    paths: ({ number }) => number && [{ to_number: number, direction: 'outbound' }, { from_number: number, direction: 'inbound' }]
      .map((side) => `/sms_messages${query(side)}`),
    tell: (sms) => ({ label: `${sms.body.slice(0, 60)}, ${time(sms.created_at)}`, href: to('messages', sms.id, { kind: 'sms' }) }),
  },
  emails: {
    paths: ({ email }) => email && [`/email_messages${query({ to: email })}`],
    tell: (mail) => ({ label: `${mail.subject.slice(0, 60)}, ${time(mail.created_at)}`, href: to('messages', mail.id, { kind: 'email' }) }),
  },
  contacts: {
    paths: ({ number, email }) => [`/contacts${query({ phone_number: number, email })}`],
    tell: (contact) => ({ label: `${nameOf(contact) || text.contactOf}, ${words.status(contact.status)}`, href: to('campaigns', contact.campaign_id) }),
  },
  sessions: {
    paths: ({ number, email }) => [`/sessions${query({ phone_number: number, email })}`],
    tell: (session) => ({ label: `${whoOf(session)}, ${time(session.created_at)}`, href: to('calls', session.id) }),
  },
  attempts: {
    paths: ({ number, email }) => [`/compliance/attempts${query({ phone_number: number, email })}`],
    tell: ({ channel, judged_at: at, objections }) => ({ label: text.attempt(channel, time(at), objections.length) }),
  },
  consents: {
    paths: ({ number, email }) => [`/consents${query({ phone_number: number, email })}`],
    tell: ({ id, seller, status, given_at: given }) => ({ label: `${seller}, ${words.plain(status)}, ${time(given)}`, href: to('consents', id) }),
  },
  dnc: {
    paths: ({ number, email }) => [`/dnc${query({ phone_number: number, email })}`],
    tell: (entry) => ({ label: `${entry.channels.join(', ')}, ${time(entry.created_at)}` }),
  },
};

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

/** What erasing is about: of the record of attempts what still names the person; how long a consent is kept the law says. */
const amountsOf = (found) => ({
  ...Object.fromEntries(ERASED.map((kind) => [kind, found[kind]?.rows.length ?? 0])),
  attempts: found.attempts.rows.filter(({ is_erased: isErased }) => !isErased).length, consents: 0,
});

/** To be saved, sent or printed; it needs nothing else. */
function File({ whom }) {
  const href = (format) => apiUrl(`/people/file${query({ phone_number: whom.number, email: whom.email, format })}`);
  return html`
    <div class="actions left">
      <a class="button quiet" href=${href('html')} download>${text.file}</a>
      <a class="button quiet" href=${href('json')} download>${text.fileJson}</a>
    </div>
    <p class="hint">${text.fileHint}</p>`;
}

/** What is held about one person. */
function Held({ whom, who }) {
  const loaded = useLoad(() => search(whom), [who]);
  return html`
    <div class="stack tight"><h3><bdi>${text.found(who)}</bdi></h3><p class="hint">${whom.email ? text.onlyByNumber : text.onlyByAddress}</p></div>
    <${Loaded} of=${loaded}>${(found) => {
      const isEmpty = Object.values(found).every(({ rows, error }) => !rows.length && !error);
      const amounts = amountsOf(found);
      return html`
        ${isEmpty ? html`<p class="empty panel">${text.nothing(who)}</p>` : html`<${Holdings} found=${found} /><${File} whom=${whom} />`}
        ${mayWrite() && html`<${Erase} ...${{ who, whom, amounts, isEmpty }} isListed=${found.dnc.rows.length > 0} reload=${loaded.reload} />`}`;
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
