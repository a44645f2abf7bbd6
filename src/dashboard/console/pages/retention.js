// How long things are kept: what the server says, what the workspace says for itself, and what each agent says of its recordings.
import { ask, call, isOwner, query } from '../api.js';
import { Field, FormDialog } from '../form.js';
import { html, useState } from '../html.js';
import { Loaded, More, Table, useLoad, usePages } from '../parts.js';
import { place, to } from '../place.js';
import { changesOf, numberOf } from '../values.js';
import { words } from '../words.js';

const text = words.compliance.retention;
const OWN = ['sessions_days', 'transcripts_days', 'contacts_days', 'messages_days', 'imports_days'];
const workspace = () => `/t/${encodeURIComponent(place.value.slug)}`;

/** In whole days, where it is some. */
const period = (seconds) => {
  const [unit, length] = [['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]].find(([, length]) => seconds % length === 0);
  return new Intl.NumberFormat(undefined, { style: 'unit', unit, unitDisplay: 'long' }).format(seconds / length);
};

function Edit({ now, most, close, reload }) {
  // As it was when the form was opened: what somebody else changes meanwhile stays.
  const [before] = useState(now);
  const act = async (values) => {
    const patch = changesOf(before, Object.fromEntries(OWN.map((name) => [name, numberOf(values, name)])));
    if (patch) await ask('PATCH', `${workspace()}/retention`, patch);
    await reload();
  };
  const field = (name) => html`
    <${Field} key=${name} name=${name} label=${text.fields[name]} hint=${text.hints[name]} type="number" step="1"
      min=${{ sessions_days: 31, messages_days: 8 }[name] ?? 1} max=${name === 'messages_days' ? most : 3650} defaultValue=${before[name]} />`;
  return html`
    <${FormDialog} title=${text.editing} act=${act} submit=${words.save} close=${close}>
      <p>${text.warning}</p>
      ${OWN.map(field)}
    <//>`;
}

function Own({ kept, events }) {
  const [isEditing, setEditing] = useState(false);
  const cells = (now) => [...text.own(now, text.days, events), ...text.always];
  return html`
    <${Loaded} of=${kept}>${(now) => html`
      <${Table} label=${text.title} columns=${Object.values(text.columns)} rows=${cells(now).map((cells) => ({ key: cells[0], cells }))} />
      ${isOwner() && html`<div class="actions left"><button class="button quiet" onClick=${() => setEditing(true)}>${text.edit}</button></div>`}
      ${isEditing && html`<${Edit} now=${now} most=${Math.floor(events / 86_400)} close=${() => setEditing(false)} reload=${kept.reload} />`}`}<//>`;
}

export function Retention() {
  const agents = usePages((cursor) => call('GET', `/agents${query({ cursor, limit: 100 })}`), []);
  const server = useLoad(() => ask('GET', workspace()), []);
  const kept = useLoad(() => ask('GET', `${workspace()}/retention`), []);
  const row = ({ id, name, recording }) => ({
    key: id,
    cells: [
      html`<a class="wrap" href=${to('agents', id)}>${name}</a>`, text.consent(recording.consent),
      recording.retention_days ? text.days(recording.retention_days) : text.forever,
    ],
  });
  return html`
    <section class="stack tight" aria-labelledby="retention">
      <h2 id="retention">${text.title}</h2>
      <${Loaded} of=${server}>${({ keeps_events_seconds: events }) => html`<${Own} kept=${kept} events=${events} />`}<//>
    </section>
    <section class="stack tight" aria-labelledby="recordings">
      <h3 id="recordings">${text.agents}</h3>
      <${Loaded} of=${server}>${({ keeps_recordings_after_opt_out_seconds: afterOptOut }) => html`<p class="hint">${text.afterOptOut(period(afterOptOut))}</p>`}<//>
      <${Loaded} of=${agents}>${(all) => {
        const recorded = all.filter(({ recording }) => recording?.enabled);
        return html`
          ${recorded.length
            ? html`<${Table} label=${text.agents} columns=${Object.values(text.agentColumns)} rows=${recorded.map(row)} />`
            : html`<p class="muted">${text.noAgents}</p>`}
          <${More} next=${agents.next} />`;
      }}<//>
      <p class="hint">${text.override}</p>
    </section>`;
}
