// Numbers whose owner has proved with a code that they are his: test keys may call them, and a code of Live claims a number for live use.
import { call, mayWrite, query } from '../api.js';
import { Field, FormDialog } from '../form.js';
import { html, useRef, useState } from '../html.js';
import { Badge, Choice, Confirm, Loaded, More, Table, Time, useAct, usePages } from '../parts.js';
import { go, place, to } from '../place.js';
import { changesOf } from '../values.js';
import { words } from '../words.js';
import { written } from './lines.js';

const text = words.numbers.verified;
const STATUSES = ['pending', 'verified'];

const isLive = () => place.value.env === 'live';
/** A new code for a number; the one before is void. */
const ask = (number, label = null) => call('POST', '/verified_numbers', { phone_number: number, label });

/** The code is shown with a test key, and texted with a live one. */
function Code({ of, close, changed }) {
  const act = async (values) => {
    await call('POST', `/verified_numbers/${of.id}/confirm`, { code: written(values, 'code') });
    await changed();
  };
  return html`
    <${FormDialog} title=${text.code.title(of.phone_number)} act=${act} submit=${text.code.submit} close=${close}>
      <p>${of.sandbox_code ? html`${text.code.shown} <strong>${of.sandbox_code}</strong>` : text.code.sent}</p>
      ${of.expires_at && html`<p class="hint">${text.code.expires} <${Time} of=${of.expires_at} />.</p>`}
      <${Field} name="code" label=${text.code.label} inputmode="numeric" autocomplete="one-time-code" required maxlength="20" />
    <//>`;
}

/** One button: sends a code to a number, and asks for it. */
export function SendCode({ number, changed }) {
  const [run, busy, error] = useAct();
  const [asked, setAsked] = useState(null);
  return html`
    <div class="actions left"><button class="button" disabled=${busy} onClick=${() => run(async () => setAsked(await ask(number)))}>${text.send}</button></div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    ${asked && html`<${Code} of=${asked} close=${() => setAsked(null)} changed=${changed} />`}`;
}

function Add({ close, changed }) {
  // The code is asked for when this dialog is closed: of two dialogs only one is open.
  const made = useRef(null);
  const act = async (values) => {
    made.current = await ask(written(values, 'phone_number'), written(values, 'label'));
    await changed();
  };
  return html`
    <${FormDialog} title=${text.adding} act=${act} submit=${text.submit} close=${() => close(made.current)}>
      <p>${isLive() ? text.live : text.test}</p>
      <${Field} name="phone_number" label=${text.columns.number} hint=${words.numbers.hints.number} type="tel" required maxlength="40" autocomplete="off" />
      <${Field} name="label" label=${text.columns.label} maxlength="200" />
    <//>`;
}

function Rename({ of, close, changed }) {
  const act = async (values) => {
    const patch = changesOf(of, { label: written(values, 'label') });
    if (patch) await call('PATCH', `/verified_numbers/${of.id}`, patch);
    await changed();
  };
  return html`
    <${FormDialog} title=${text.renaming(of.phone_number)} act=${act} submit=${words.save} close=${close}>
      <${Field} name="label" label=${text.columns.label} maxlength="200" defaultValue=${of.label ?? ''} />
    <//>`;
}

export function VerifiedNumbers() {
  const { query: given } = place.value;
  const status = given.get('status') ?? '';
  const pages = usePages((cursor) => call('GET', `/verified_numbers${query({ status, cursor, limit: 50 })}`), [status]);
  const [run, busy, error] = useAct();
  /** `{ add }`, `{ code }`, `{ rename }` or `{ remove }`. */
  const [dialog, setDialog] = useState(null);
  const close = () => setDialog(null);
  const again = (number) => run(async () => {
    const made = await ask(number.phone_number);
    await pages.reload();
    setDialog({ code: made });
  });
  const remove = async () => {
    await call('DELETE', `/verified_numbers/${dialog.remove.id}`);
    await pages.reload();
  };
  const actions = (number) => {
    const button = (word, act, kind = '') => html`
      <button class="button quiet small ${kind}" disabled=${busy} aria-label="${word}: ${number.phone_number}" onClick=${act}>${word}</button>`;
    return html`<div class="row-actions">
      ${number.expires_at && button(text.enter, () => setDialog({ code: number }))}
      ${(number.status === 'pending' || isLive()) && button(text.again, () => again(number))}
      ${button(text.rename, () => setDialog({ rename: number }))}
      ${button(words.remove, () => setDialog({ remove: number }), 'danger')}
    </div>`;
  };
  const row = (number) => ({
    key: number.id,
    cells: [
      html`<strong class="number">${number.phone_number}</strong>`, number.label ? html`<span class="wrap">${number.label}</span>` : words.none,
      html`<${Badge} of=${number.status === 'verified' ? 'active' : number.status}>${text.status(number.status)}<//>`,
      number.verified_at ? html`<${Time} of=${number.verified_at} />` : words.none,
      number.expires_at ? html`<${Time} of=${number.expires_at} />` : words.none,
      ...(mayWrite() ? [actions(number)] : []),
    ],
  });
  const { actions: last, ...columns } = text.columns;
  return html`
    <p>${text.intro}</p>
    ${mayWrite() && html`<div class="actions left"><button class="button" onClick=${() => setDialog({ add: true })}>${text.add}</button></div>`}
    <div class="filters">
      <${Choice} id="status" label=${text.columns.status} value=${status} options=${[['', text.any], ...STATUSES.map((name) => [name, text.status(name)])]}
        onChange=${(value) => go(to('numbers', '', { show: 'verified', status: value }), { replace: true })} />
    </div>
    ${error && html`<p class="error block" role="alert">${error.message}</p>`}
    <${Loaded} of=${pages}>${(numbers) => numbers.length
      ? html`<${Table} label=${words.numbers.views.verified} columns=${Object.values(mayWrite() ? { ...columns, last } : columns)} rows=${numbers.map(row)} /><${More} next=${pages.next} />`
      : html`<p class="empty panel">${status ? text.none : text.empty}</p>`}<//>
    ${dialog?.add && html`<${Add} close=${(made) => setDialog(made && { code: made })} changed=${pages.reload} />`}
    ${dialog?.code && html`<${Code} of=${dialog.code} close=${close} changed=${pages.reload} />`}
    ${dialog?.rename && html`<${Rename} of=${dialog.rename} close=${close} changed=${pages.reload} />`}
    ${dialog?.remove && html`<${Confirm} asks=${{ ...text.removing, title: text.removing.title(dialog.remove.phone_number) }} act=${remove} close=${close} />`}`;
}
