// The dialogs that send a message, or let one arrive.
import { ApiError } from '../../common.js';
import { call, query } from '../api.js';
import { Area, Field, FormDialog, Select } from '../form.js';
import { html, useState } from '../html.js';
import { everything } from '../lists.js';
import { go, place, to } from '../place.js';
import { useLoad } from '../parts.js';
import { words } from '../words.js';
import { localOf } from './hours.js';
import { numberOf } from './calls.js';
import { written } from './lines.js';
import { Pairs, pairsOf } from './pairs.js';
import { segmentsOf } from './segments.js';

const text = words.messages;
const ask = text.form;
const TYPES = ['transactional', 'marketing'];
/** Limits of the API. */
const MOST_TEXT = 1_600;
const MOST_FILES = 10;
const MOST_BYTES = 700 * 1024;
const FURTHEST_DAYS = 35;
/** The numbers that are offered. */
const MOST_NUMBERS = 200;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** For a text that comes in: the first number of the sandbox, and somebody in it. */
const [SANDBOX_TO, SANDBOX_FROM] = ['+15002000000', '+15002340199'];

/** What is left out is null. The API takes the moment in UTC. */
const momentOf = (values) => (values.get('scheduled_at') ? new Date(values.get('scheduled_at')).toISOString() : null);

function base64(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => failed(new ApiError(text.unreadable(file.name), { param: 'attachments' }));
    reader.readAsDataURL(file);
  });
}

async function attachmentsOf(values) {
  const files = values.getAll('attachments').filter((file) => file.size > 0 || file.name);
  if (files.length > MOST_FILES || files.reduce((sum, { size }) => sum + size, 0) > MOST_BYTES) {
    throw new ApiError(text.tooBig, { param: 'attachments' });
  }
  return Promise.all(files.map(async (file) => ({
    filename: file.name, content_type: file.type || 'application/octet-stream', content: await base64(file),
  })));
}

function When() {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  const [now, last] = [new Date(), new Date(Date.now() + FURTHEST_DAYS * DAY_MS)].map(localOf);
  return html`<${Field} name="scheduled_at" label=${ask.at} hint=${ask.atHint(timeZone)} type="datetime-local" min=${now} max=${last} />`;
}

const Own = () => html`
  <${Field} name="client_reference_id" label=${ask.reference} maxlength="200" autocomplete="off" />
  <${Pairs} name="metadata" label=${ask.metadata} />`;

const ownOf = (values) => ({ client_reference_id: written(values, 'client_reference_id'), metadata: pairsOf(values, 'metadata') });

/** What the law has put under a text to that number; null: nothing, or nothing binds here. */
async function lineUnder(typed) {
  if (!typed || place.value.env === 'test') return null;
  const found = await call('GET', `/compliance/check${query({ to: numberOf(typed), channel: 'sms' })}`);
  return found.sms_line;
}

/** `reply`: the message that is answered. */
export function SendSms({ close, reply = null }) {
  const { env } = place.value;
  const [recipient, setRecipient] = useState(reply?.from_number ?? '');
  // Whatever keeps it from being known is told when the text is sent.
  const { data: line } = useLoad(() => lineUnder(recipient), [recipient]);
  const { data: numbers } = useLoad(() => everything('/numbers', { most: MOST_NUMBERS }), []);
  const [body, setBody] = useState('');
  const { segments, encoding } = segmentsOf(body);
  const signed = line && text.signed(line, [...line].length, segmentsOf(`${body}\n${line}`).segments);
  const send = async (values) => {
    const sent = await call('POST', '/sms_messages', {
      to_number: numberOf(values.get('to_number')), body: values.get('body'), from_number: written(values, 'from_number'),
      scheduled_at: momentOf(values), ...ownOf(values),
    });
    go(to('messages', sent.id, { kind: 'sms' }));
  };
  // Live, only what the workspace has proved to be its own.
  const usable = (numbers ?? []).filter(({ status }) => env === 'test' || status === 'active');
  const options = usable.map(({ phone_number: number, label }) => [number, label ? `${number}, ${label}` : number]);
  const isOurs = options.some(([number]) => number === reply?.to_number);
  return html`
    <${FormDialog} title=${text.send.sms} act=${send} submit=${text.go} close=${close}>
      <${Field} name="to_number" label=${ask.to} hint=${env === 'test' ? ask.toSandbox : ask.toHint} type="tel"
        defaultValue=${reply?.from_number ?? ''} required maxlength="40" autocomplete="off"
        onChange=${({ target }) => setRecipient(target.value)} />
      <${Area} name="body" label=${ask.body} hint=${[text.size(segments, text.encoding(encoding)), signed].filter(Boolean).join(' ')}
        required maxlength=${MOST_TEXT} dir="auto" onInput=${({ target }) => setBody(target.value)} />
      ${options.length > 0 && html`
        <${Select} name="from_number" label=${ask.from} options=${[['', ask.fromDefault], ...options]} defaultValue=${isOurs ? reply.to_number : ''} />`}
      <${When} />
      <details class="stack"><summary>${ask.more}</summary><div class="stack"><${Own} /></div></details>
    <//>`;
}

export function SendEmail({ close }) {
  const send = async (values) => {
    const sent = await call('POST', '/email_messages', {
      to: values.get('to').trim(), subject: values.get('subject'), text: values.get('text') || null, html: values.get('html') || null,
      kind: values.get('kind'), scheduled_at: momentOf(values), from_name: written(values, 'from_name'), reply_to: written(values, 'reply_to'),
      attachments: await attachmentsOf(values), ...ownOf(values),
    });
    go(to('messages', sent.id, { kind: 'email' }));
  };
  return html`
    <${FormDialog} title=${text.send.email} act=${send} submit=${text.go} close=${close} isNarrow=${false}>
      <${Field} name="to" label=${ask.address} hint=${ask.addressHint} type="email" required maxlength="254" autocomplete="off" />
      <${Field} name="subject" label=${ask.subject} required maxlength="500" autocomplete="off" dir="auto" />
      <${Area} name="text" label=${ask.text} rows="8" maxlength="200000" dir="auto" />
      <${Select} name="kind" label=${ask.type} hint=${ask.marketingHint} options=${TYPES.map((type) => [type, text.type(type)])} defaultValue="transactional" />
      <${When} />
      <details class="stack"><summary>${ask.more}</summary>
        <div class="stack">
          <${Area} name="html" label=${ask.html} rows="6" maxlength="500000" spellcheck="false" />
          <${Field} name="attachments" label=${ask.files} hint=${ask.filesHint} type="file" multiple />
          <${Field} name="from_name" label=${ask.fromName} maxlength="100" autocomplete="off" />
          <${Field} name="reply_to" label=${ask.replyTo} type="email" maxlength="254" autocomplete="off" />
          <${Own} />
        </div>
      </details>
    <//>`;
}

/** A text that comes in, played by the sandbox. `done` gets what became of it. */
export function Arrive({ close, done }) {
  const { data: numbers } = useLoad(() => everything('/numbers', { most: MOST_NUMBERS }), []);
  const arrive = async (values) => done(await call('POST', '/_sandbox/inbound_sms', {
    from_number: values.get('from_number').trim(), to_number: values.get('to_number').trim(), body: values.get('body'),
  }));
  return html`
    <${FormDialog} title=${text.arrive} act=${arrive} submit=${text.arriveForm.go} close=${close}>
      <${Field} name="from_number" label=${text.arriveForm.from} type="tel" required maxlength="40" defaultValue=${SANDBOX_FROM} autocomplete="off" />
      <${Field} name="to_number" label=${text.arriveForm.to} hint=${text.arriveForm.toHint} type="tel" required maxlength="40"
        defaultValue=${SANDBOX_TO} list="own-numbers" autocomplete="off" />
      <datalist id="own-numbers">${(numbers ?? []).map(({ id, phone_number: number }) => html`<option key=${id} value=${number} />`)}</datalist>
      <${Area} name="body" label=${text.arriveForm.body} hint=${text.arriveForm.bodyHint} maxlength=${MOST_TEXT} dir="auto" />
    <//>`;
}
