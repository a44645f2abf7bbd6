// Who the workspace is by law: said at the start of live calls, and written under its mails.
import { ask, isOwner } from '../api.js';
import { Area, Field, FormDialog } from '../form.js';
import { html, useState } from '../html.js';
import { Facts, Loaded, useLoad } from '../parts.js';
import { place } from '../place.js';
import { changesOf, someText } from '../values.js';
import { words } from '../words.js';
import { Pairs, pairsOf } from './pairs.js';

const text = words.compliance.identity;
const FIELDS = ['registered_name', 'trade_name', 'callback_number', 'toll_free_number', 'postal_address'];
const path = () => `/t/${encodeURIComponent(place.value.slug)}/identity`;
const linesOf = (registrations) => Object.entries(registrations).map(([name, value]) => `${name} = ${value}`).join('\n');

function Edit({ now, close, reload }) {
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(now);
  const act = async (values) => {
    const given = pairsOf(values, 'registrations');
    const gone = Object.keys(before.registrations).filter((name) => !Object.hasOwn(given, name)).map((name) => [name, null]);
    const patch = changesOf(before, {
      ...Object.fromEntries(FIELDS.map((name) => [name, someText(values, name)])), registrations: { ...Object.fromEntries(gone), ...given },
    });
    if (patch) await ask('PATCH', path(), patch);
    await reload();
  };
  const field = (name, rest = {}) => html`
    <${Field} key=${name} name=${name} label=${text.fields[name]} hint=${text.hints[name]} defaultValue=${before[name] ?? ''} maxlength="200" ...${rest} />`;
  return html`
    <${FormDialog} title=${text.edit} act=${act} submit=${words.save} close=${close}>
      ${field('registered_name')}${field('trade_name')}
      <div class="fields">${field('callback_number', { type: 'tel' })}${field('toll_free_number', { type: 'tel' })}</div>
      <${Area} name="postal_address" label=${text.fields.postal_address} hint=${text.hints.postal_address} rows="3" maxlength="500"
        defaultValue=${before.postal_address ?? ''} />
      <${Pairs} name="registrations" label=${text.fields.registrations} defaultValue=${linesOf(before.registrations)} />
    <//>`;
}

export function Identity() {
  const loaded = useLoad(() => ask('GET', path()), []);
  const [isEditing, setEditing] = useState(false);
  return html`
    <section class="stack tight" aria-labelledby="identity">
      <h2 id="identity">${text.title}</h2>
      <p class="muted">${text.intro}</p>
      <${Loaded} of=${loaded}>${(now) => html`
        ${!now.registered_name && html`<p class="notice">${text.missing}</p>`}
        <${Facts} of=${[
          ...FIELDS.map((name) => [text.fields[name], now[name] && html`<span class="wrap">${now[name]}</span>`]),
          ...Object.entries(now.registrations),
        ]} />
        ${isOwner() && html`<div class="actions left"><button class="button quiet" onClick=${() => setEditing(true)}>${text.edit}</button></div>`}
        ${isEditing && html`<${Edit} now=${now} close=${() => setEditing(false)} reload=${loaded.reload} />`}`}<//>
    </section>`;
}
