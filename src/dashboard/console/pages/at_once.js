// How many calls there may be at once, and how many slots are kept for those that come in.
import { call, mayWrite } from '../api.js';
import { Field, FormDialog } from '../form.js';
import { count, decimal } from '../format.js';
import { html, useState } from '../html.js';
import { useLive } from '../live.js';
import { Facts, Loaded, Progress, useLoad } from '../parts.js';
import { place } from '../place.js';
import { changesOf, numberOf } from '../values.js';
import { words } from '../words.js';

const text = words.numbers.atOnce;
const SOURCES = ['campaign', 'api', 'inbound', 'room'];

function Edit({ now, close, reload }) {
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(now);
  const act = async (values) => {
    const patch = changesOf(before, { limit: numberOf(values, 'limit'), inbound_reserve: numberOf(values, 'inbound_reserve') });
    if (patch) await call('PATCH', '/concurrency', patch);
    await reload();
  };
  return html`
    <${FormDialog} title=${text.editing} act=${act} submit=${words.save} close=${close}>
      <p>${text.both}</p>
      <${Field} name="limit" label=${text.limit} hint=${text.limitHint(count(now.max_limit))} type="number" min="1" max=${now.max_limit} step="1" required defaultValue=${before.limit} />
      <${Field} name="inbound_reserve" label=${text.reserve} hint=${text.reserveHint} type="number" min="0" step="1" required defaultValue=${before.inbound_reserve} />
    <//>`;
}

export function AtOnce() {
  const loaded = useLoad(() => call('GET', '/concurrency'), []);
  const [isEditing, setEditing] = useState(false);
  useLive(({ type }) => type.startsWith('session.') || type.startsWith('room.'), loaded.reload, 5_000);
  return html`
    <section class="stack tight" aria-labelledby="at-once">
      <h2 id="at-once">${text.title}</h2>
      <${Loaded} of=${loaded}>${(now) => {
        const label = text.inUse(count(now.in_use), count(now.limit), words.env[place.value.env]);
        return html`
          <div class="whole"><${Progress} done=${now.in_use} total=${now.limit} label=${label} /><span>${label}</span></div>
          <${Facts} of=${[
            [text.limit, count(now.limit)], [text.reserve, count(now.inbound_reserve)], [text.available, count(now.available)],
            ...SOURCES.map((name) => [text.sources[name], count(now.by_source[name])]), [text.rate, decimal(now.calls_per_second)],
          ]} />
          ${mayWrite() && html`<div class="actions left"><button class="button quiet" onClick=${() => setEditing(true)}>${text.edit}</button></div>`}
          ${isEditing && html`<${Edit} now=${now} close=${() => setEditing(false)} reload=${loaded.reload} />`}`;
      }}<//>
    </section>`;
}
