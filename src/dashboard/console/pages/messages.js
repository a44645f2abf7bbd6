import { call, currency, mayWrite, query } from '../api.js';
import { html, useRef, useState } from '../html.js';
import { count, money } from '../format.js';
import { useEvery } from '../live.js';
import { Badge, Choice, Confirm, Facts, Heading, Loaded, More, Note, Table, Time, Typed, useLoad, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { words } from '../words.js';
import { PairFacts } from './pairs.js';
import { exact } from './pieces.js';
import { Arrive, SendEmail, SendSms } from './send_message.js';

const text = words.messages;
const PATHS = { sms: '/sms_messages', email: '/email_messages' };
const STATUSES = {
  sms: ['scheduled', 'queued', 'sent', 'delivered', 'undelivered', 'failed', 'canceled', 'received'],
  email: ['scheduled', 'queued', 'deferred', 'sent', 'bounced', 'failed', 'canceled'],
};
/** What else each kind is filtered by: the name in the address, and of the API. */
const FILTERS = {
  sms: { direction: ['direction', ['outbound', 'inbound'], words.direction], to: ['to_number'] },
  email: { type: ['kind', ['transactional', 'marketing'], text.type], to: ['to'] },
};
/** Not handed to anybody yet. */
const CANCELABLE = ['scheduled', 'queued', 'deferred'];
const SHADES = { delivered: 'completed', received: 'completed', undelivered: 'failed', bounced: 'failed' };
/** No event tells of messages: what is on its way is looked at often, the rest now and then. */
const [SOON_MS, LATER_MS] = [5_000, 30_000];
/** A provider that has reported nothing by then hardly will. */
const REPORTS_MS = 15 * 60 * 1_000;
/** Characters of a text in the list. */
const MOST_SHOWN = 120;

const kindOf = (query) => (query.get('kind') === 'email' ? 'email' : 'sms');
const Status = ({ of, kind }) => html`<${Badge} of=${of === 'sent' && kind === 'email' ? 'completed' : SHADES[of] ?? of}>${words.status(of)}<//>`;
const cut = (whole) => (whole.length > MOST_SHOWN ? `${whole.slice(0, MOST_SHOWN)}…` : whole);

/** Will it be another one soon? */
function isOnItsWay({ status, ended_at: ended, sent_at: sent, scheduled_at: scheduled }) {
  if (ended) return false;
  if (status === 'scheduled') return Date.parse(scheduled) - Date.now() < LATER_MS;
  return status !== 'sent' || Date.now() - Date.parse(sent) < REPORTS_MS;
}

const whoOf = ({ direction, from_number: from, to_number: number, to: address }) => (direction === 'inbound' ? from ?? text.withheld : number ?? address);

/** Which dialog is open, and what came of it. */
function Write({ kind }) {
  const [open, setOpen] = useState('');
  const [arrived, setArrived] = useState(null);
  const answer = useRef(null);
  const close = () => {
    setOpen('');
    // Only now, so that the focus goes back to the button first.
    setArrived(answer.current);
    answer.current = null;
  };
  return html`
    <div class="actions left">
      <button class="button" onClick=${() => setOpen(kind)}>${text.send[kind]}</button>
      ${kind === 'sms' && place.value.env === 'test' && html`<button class="button quiet" onClick=${() => setOpen('arrive')}>${text.arrive}</button>`}
    </div>
    ${open === 'sms' && html`<${SendSms} close=${close} />`}
    ${open === 'email' && html`<${SendEmail} close=${close} />`}
    ${open === 'arrive' && html`<${Arrive} close=${close} done=${(it) => { answer.current = it; }} />`}
    ${arrived && html`
      <${Note} title=${text.arrived.title} close=${() => setArrived(null)}>
        ${arrived.reply ? html`<p>${text.arrived.reply}</p><p class="message-text">${arrived.reply}</p>` : html`<p>${text.arrived.none}</p>`}
        <p><a href=${to('messages', arrived.message.id, { kind: 'sms' })}>${text.arrived.look}</a></p>
      <//>`}`;
}

export function Messages() {
  const { query: address } = place.value;
  const kind = kindOf(address);
  const names = ['status', ...Object.keys(FILTERS[kind])];
  const asked = Object.fromEntries(names.map((name) => [name, address.get(name) ?? '']));
  const wanted = Object.fromEntries(names.map((name) => [FILTERS[kind][name]?.[0] ?? name, asked[name]]));
  const pages = usePages((cursor) => call('GET', PATHS[kind] + query({ ...wanted, cursor, limit: 50 })), [kind, ...Object.values(asked)]);
  const { data: inMoney } = useLoad(currency, []);
  useEvery(pages.reload, pages.data?.some(isOnItsWay) ? SOON_MS : LATER_MS);
  const look = (name) => (value) => go(to('messages', '', { kind, ...asked, [name]: value.trim() }), { replace: true });
  const row = (message) => {
    const { id, body, subject, direction, kind: type, status, created_at: created, actual_cost_cents: cost } = message;
    return {
      key: id,
      cells: [
        html`<a class=${kind === 'sms' ? 'nowrap' : ''} href=${to('messages', id, { kind })}>${whoOf(message)}</a>`,
        html`<span class="wrap" dir="auto">${cut(body ?? subject) || html`<span class="muted">${text.blank}</span>`}</span>`,
        kind === 'sms' ? words.direction(direction) : text.type(type), html`<${Status} of=${status} kind=${kind} />`, html`<${Time} of=${created} />`,
        html`<span class="nowrap">${money(cost, inMoney ?? undefined)}</span>`,
      ],
    };
  };
  const filter = (name, [, values, label]) => html`
    <${Choice} key=${name} id=${name} label=${text.filters[name]} value=${asked[name]} onChange=${look(name)}
      options=${[['', text.any], ...values.map((value) => [value, label(value)])]} />`;
  return html`
    <${Heading} title=${text.title} />
    <nav class="tabs" aria-label=${text.kinds.label}>
      ${Object.keys(PATHS).map((name) => html`
        <a key=${name} href=${to('messages', '', { kind: name })} aria-current=${name === kind ? 'page' : undefined}>${text.kinds[name]}</a>`)}
    </nav>
    ${mayWrite() && html`<${Write} key=${kind} kind=${kind} />`}
    <div class="filters">
      ${filter('status', ['status', STATUSES[kind], words.status])}
      ${Object.entries(FILTERS[kind]).filter(([name]) => name !== 'to').map(([name, of]) => filter(name, of))}
      <${Typed} key="to" id="to" type="search" label=${text.filters.to[kind]} value=${asked.to} maxlength="254" autocomplete="off" onChange=${look('to')} />
    </div>
    <${Loaded} of=${pages}>${(messages) => messages.length
      ? html`<${Table} label=${text.kinds[kind]} columns=${Object.values(text.columns[kind])} rows=${messages.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${Object.values(asked).some(Boolean) ? text.noMatch : text.empty[kind]}</p>`}<//>`;
}

/** The address says which kind it is; a link that does not may be to either. */
async function find(id, kind) {
  try {
    return { kind, message: await call('GET', `${PATHS[kind]}/${id}`) };
  } catch (error) {
    if (error.status !== 404) throw error;
    const other = kind === 'sms' ? 'email' : 'sms';
    return { kind: other, message: await call('GET', `${PATHS[other]}/${id}`) };
  }
}

async function load(id, kind) {
  const [found, inMoney] = await Promise.all([find(id, kind), currency()]);
  return { ...found, inMoney };
}

/** `[what, when]`, in the order in which it happened. */
function momentsOf({ direction, status, created_at: created, scheduled_at: scheduled, sent_at: sent, delivered_at: delivered, ended_at: ended }, kind) {
  const last = ended && ended !== delivered && ended !== sent && direction !== 'inbound';
  return [
    [direction === 'inbound' ? text.moments.received : text.moments.created, created],
    [kind === 'sms' ? text.moments.sent : text.moments.mailed, sent], [text.moments.delivered, delivered], [words.status(status), last && ended],
    [text.moments.scheduled, !sent && !ended && scheduled],
  ].filter(([, at]) => at).sort(([, one], [, other]) => Date.parse(one) - Date.parse(other));
}

const Fault = ({ error: { code, message }, isOver }) => html`
  <div class=${isOver ? 'error block' : 'notice'} role=${isOver ? 'alert' : 'status'}>
    <p><strong>${!isOver && `${text.waits} `}${text.fault(code)}</strong></p>
    ${message && html`<p class="wrap" dir="auto">${message}</p>`}
  </div>`;

function Actions({ kind, message, reload }) {
  const [open, setOpen] = useState('');
  const close = () => setOpen('');
  const cancel = async () => {
    await call('POST', `${PATHS[kind]}/${message.id}/cancel`, undefined);
    await reload();
  };
  const mayReply = message.direction === 'inbound' && message.from_number;
  const mayCancel = CANCELABLE.includes(message.status);
  return html`
    ${(mayReply || mayCancel) && html`
      <div class="actions left">
        ${mayReply && html`<button class="button" onClick=${() => setOpen('reply')}>${text.reply}</button>`}
        ${mayCancel && html`<button class="button quiet danger" onClick=${() => setOpen('cancel')}>${text.cancel}</button>`}
      </div>`}
    ${open === 'cancel' && html`<${Confirm} asks=${text.confirmCancel} act=${cancel} close=${close} />`}
    ${open === 'reply' && html`<${SendSms} reply=${message} close=${close} />`}`;
}

function titleOf(kind, message) {
  if (kind === 'email') return text.one.email(message.to);
  return text.one.sms[message.direction === 'inbound' ? 'by' : 'to'](whoOf(message));
}

export function Message({ id }) {
  const loaded = useLoad(() => load(id, kindOf(place.value.query)), [id]);
  useEvery(loaded.reload, SOON_MS, Boolean(loaded.data && isOnItsWay(loaded.data.message)));
  return html`
    <${Loaded} of=${loaded} isPage>${({ kind, message, inMoney }) => html`
      <${Heading} title=${titleOf(kind, message)}><${Status} of=${message.status} kind=${kind} /><//>
      ${message.error && html`<${Fault} error=${message.error} isOver=${Boolean(message.ended_at)} />`}
      ${mayWrite() && html`<${Actions} kind=${kind} message=${message} reload=${loaded.reload} />`}
      <${Facts} of=${[
        [text.facts.to, message.to_number ?? message.to], [text.facts.from, message.from_number],
        [text.facts.direction, message.direction && words.direction(message.direction)], [text.facts.type, message.kind && text.type(message.kind)],
        [text.facts.fromName, message.from_name], [text.facts.replyTo, message.reply_to],
        [text.facts.segments, message.segments && text.segments(count(message.segments), text.encoding(message.encoding))],
        [text.facts.price, message.direction === 'inbound' ? null : money(message.price_cents, inMoney)], [text.facts.cost, money(message.actual_cost_cents, inMoney)],
        [text.facts.attempts, message.direction === 'inbound' ? null : count(message.attempts)],
        [text.facts.campaign, message.campaign_id && html`<a href=${to('campaigns', message.campaign_id)}>${text.showCampaign}</a>`],
        [text.facts.reference, message.client_reference_id], [text.facts.provider, message.provider_message_id],
      ]} />
      <div class="columns">
        <section class="stack tight" aria-labelledby="text"><h2 id="text">${kind === 'sms' ? text.text : text.facts.subject}</h2>
          <p class="message-text" dir="auto">${message.body ?? message.subject}</p>
          ${kind === 'email' && html`<p class="hint">${text.notKept}</p>`}
        </section>
        <section class="stack tight"><h2>${text.timeline}</h2>
          <ol class="timeline dated">${momentsOf(message, kind).map(([what, at]) => html`
            <li key=${what}><${Time} of=${at} format=${exact} /><strong>${what}</strong></li>`)}</ol>
        </section>
      </div>
      <${PairFacts} title=${text.metadata} of=${message.metadata} />`}<//>`;
}
