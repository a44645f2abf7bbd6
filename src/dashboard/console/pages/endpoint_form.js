// What a person decides about a webhook endpoint, and secrets that are shown once.
import { ApiError } from '../../common.js';
import { html, useEffect, useId, useRef, useState } from '../html.js';
import { Area, Check, Field, Form, Secret, Select } from '../form.js';
import { useDialog } from '../parts.js';
import { words } from '../words.js';
import { groupOf, inGroups, unmarked } from './pieces.js';

const text = words.webhooks.form;
const ALL = '*';
/** Deliveries at once, unless somebody chooses. */
const LANES = 8;
const plain = { autocomplete: 'off', autocapitalize: 'off', spellcheck: false };

/** One group of event types: all of it, with those that come later, or some. */
function Group({ name, types, picked, toggle }) {
  const whole = `${name}.*`;
  const isWhole = picked.has(whole);
  const count = isWhole ? types.length : types.filter((type) => picked.has(type.name)).length;
  const id = useId();
  // What is chosen one by one stays chosen while all is; only what is not disabled is sent.
  const box = (pattern, label, hint, given) => html`
    <div class="pick" key=${pattern}>
      <label><input type="checkbox" name="event_types" value=${pattern} aria-describedby=${hint ? `${id}-${pattern}` : undefined}
        onChange=${() => toggle(pattern)} ...${given} /> ${label}</label>
      ${hint && html`<p class="hint" id="${id}-${pattern}">${hint}</p>`}
    </div>`;
  return html`
    <details class="picks">
      <summary>${words.events.groups(name)} <span class="hint">${text.picked(count, types.length)}</span></summary>
      ${box(whole, html`${text.whole} <code>${whole}</code>`, '', { checked: isWhole })}
      ${types.map(({ name: type, description }) =>
        box(type, html`<code>${type}</code>`, unmarked(description), { checked: isWhole || picked.has(type), disabled: isWhole }))}
    </details>`;
}

function EventPicker({ types, chosen }) {
  const [picked, setPicked] = useState(() => new Set(chosen));
  const toggle = (pattern) => setPicked((before) => {
    const after = new Set(before);
    if (!after.delete(pattern)) after.add(pattern);
    return after;
  });
  return html`
    <fieldset class="stack tight">
      <legend>${text.events}</legend>
      <${Check} name="event_types" label=${text.all} value=${ALL} checked=${picked.has(ALL)} onChange=${() => toggle(ALL)} />
      ${!picked.has(ALL) && inGroups(types).map(([name, group]) => html`
        <${Group} key=${name} name=${name} types=${group} picked=${picked} toggle=${toggle} />`)}
    </fieldset>`;
}

/** The fields of an endpoint: of a new one, or as it is. */
export const EndpointFields = ({ endpoint = null, types }) => html`
  <${Field} name="url" type="url" label=${text.url} hint=${text.urlHint} required maxlength="2000" defaultValue=${endpoint?.url}
    data-message=${text.urlMissing} ...${plain} />
  <${EventPicker} types=${types} chosen=${endpoint?.event_types ?? [ALL]} />
  <${Field} name="description" label=${text.description} maxlength="500" defaultValue=${endpoint?.description} autocomplete="off" />
  <details class="settings"><summary>${text.more}</summary><div class="stack">
    <${Field} name="timeout_ms" type="number" label=${text.timeout} hint=${text.timeoutHint} min="1000" max="30000"
      defaultValue=${endpoint?.timeout_ms} />
    <${Field} name="max_concurrency" type="number" label=${text.concurrency} hint=${text.concurrencyHint} min="1" max="64"
      defaultValue=${endpoint?.max_concurrency ?? LANES} />
    <${Select} name="ordering" label=${text.ordering} options=${Object.entries(text.orderings)} defaultValue=${endpoint?.ordering} />
    ${endpoint?.header_names.map((name) => html`
      <${Check} key=${name} name="remove_header" value=${name} label=${html`<span class="wrap">${text.removeHeader(name)}</span>`} />`)}
    <${Area} name="headers" label=${endpoint?.header_names.length ? text.moreHeaders : text.headers} hint=${text.headersHint} rows="3" ...${plain} />
  </div></details>`;

const bad = (message, param) => new ApiError(message, { param });

/** `Name: value` lines. A name that is known in other letters is the known one. */
function headersOf(lines, known) {
  const headers = new Map();
  for (const line of lines.split('\n').map((one) => one.trim()).filter(Boolean)) {
    const [, given, value] = /^([^:]+):(.*)$/.exec(line) ?? [];
    if (!given) throw bad(text.headerLine, 'headers');
    const name = known.find((one) => one.toLowerCase() === given.trim().toLowerCase()) ?? given.trim();
    if (headers.has(name)) throw bad(text.headerTwice(name), 'headers');
    headers.set(name, value.trim());
  }
  return headers;
}

/** What the form says. Of headers only what is to be changed: the values that are there are not known here. */
export function settingsOf(values, endpoint = null) {
  const types = values.getAll('event_types').sort();
  if (!types.length) throw bad(text.noEvents, 'event_types');
  const headers = headersOf(values.get('headers'), endpoint?.header_names ?? []);
  for (const name of values.getAll('remove_header')) if (!headers.has(name)) headers.set(name, null);
  const number = (name) => (values.get(name) ? Number(values.get(name)) : null);
  return {
    url: values.get('url').trim(), event_types: types, description: values.get('description').trim() || null,
    timeout_ms: number('timeout_ms'), max_concurrency: number('max_concurrency') ?? LANES, ordering: values.get('ordering'),
    headers: Object.fromEntries(headers),
  };
}

/** What an endpoint is set to, to tell what is new: its types in the order of `settingsOf`; of its headers nobody knows more than their names. */
export const knownOf = (endpoint) => ({
  ...endpoint, event_types: [...endpoint.event_types].sort(), headers: Object.fromEntries(endpoint.header_names.map((name) => [name, true])),
});

export const eventsOf = ({ event_types: patterns }) => (patterns.includes(ALL) ? text.everything : patterns.join(', '));
/** Does the endpoint get events of this type? */
export const receives = ({ event_types: patterns }, type) => patterns.some((pattern) => [ALL, `${groupOf(type)}.*`, type].includes(pattern));

/** A form whose answer holds a secret: it takes the form's place, and is gone when the dialog is closed. */
export function SecretDialog({ title, act, submit, close, children, done, isNarrow = true }) {
  const { dialog, leave, closed } = useDialog(close);
  const [secret, setSecret] = useState(null);
  // Who leaves before the answer never sees the secret.
  const isBusy = useRef(false);
  const send = async (values) => {
    isBusy.current = true;
    try {
      setSecret(await act(values));
    } finally {
      isBusy.current = false;
    }
  };
  const heading = useRef(null);
  const id = useId();
  useEffect(() => { if (secret) heading.current.focus(); }, [secret]);
  return html`
    <dialog ref=${dialog} class=${isNarrow ? 'narrow' : ''} aria-labelledby=${id} onClose=${closed}
      onCancel=${(event) => isBusy.current && event.preventDefault()}>
      <div class="stack">
        <h2 id=${id} ref=${heading} tabindex=${secret ? -1 : undefined}>${secret ? done.title : title}</h2>
        ${secret
          ? html`<p>${done.text}</p><${Secret} value=${secret} label=${done.label} />
            <div class="actions"><button class="button" onClick=${leave}>${done.button}</button></div>`
          : html`<${Form} act=${send} submit=${submit} leave=${leave}>${children}<//>`}
      </div>
    </dialog>`;
}
